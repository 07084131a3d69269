"""No form is made of a file that is no certificate, that does not hold, or over what is there."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.serialization import Encoding

from tests.common.rpc.test_release_certificate import OTHER_AUTHORITY
from tests.deploy.attest.conftest import Given
from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.deploy.attest.attest_cli import certificate

FORMS = {
    "registry": ("wages.yaml", "--author", "Ana Diaz"),
    "crate": ("crate",),
    "nist": ("wages.md",),
    "dsse": ("wages.dsse", "--identity", "unread"),
}
every_form = pytest.mark.parametrize("form", FORMS)


@every_form
def test_a_file_that_is_no_certificate_is_refused(given: Given, form: str) -> None:
    for content in (b"", b"PK\x03\x04", b"\xff\xfe", b"{}\n", given.path("study.toml").read_bytes()):
        given.path("wages.certificate").write_bytes(content)
        error = given.refused(form, *FORMS[form])
        assert isinstance(error, IntegrityError)
        assert "not a release certificate" in str(error)


@every_form
def test_a_certificate_that_was_altered_is_refused(given: Given, form: str) -> None:
    text = given.path("wages.certificate").read_text()
    given.path("wages.certificate").write_text(text.replace('"population":1000', '"population":1001'))
    error = given.refused(form, *FORMS[form])
    assert isinstance(error, InvalidInputError)
    assert "does not hold" in str(error)


@every_form
def test_a_certificate_of_another_study_file_or_authority_is_refused(given: Given, form: str) -> None:
    given.path("ca.pem").write_bytes(OTHER_AUTHORITY.certificate.public_bytes(Encoding.PEM))
    assert "of another authority" in str(given.refused(form, *FORMS[form]))
    study = given.path("study.toml").read_bytes()
    given.path("study.toml").write_bytes(study.replace(b"A survey", b"A Survey"))
    assert "of another study file" in str(given.refused(form, *FORMS[form]))


@every_form
def test_nothing_is_written_over_what_is_there(given: Given, form: str) -> None:
    out = given.path(FORMS[form][0])
    for make in (lambda: out.write_text("kept"), out.mkdir, lambda: out.symlink_to("nowhere")):
        make()
        assert "there is such a file already" in str(given.refused(form, *FORMS[form]))
        (out.rmdir if out.is_dir() else out.unlink)()


@every_form
def test_a_file_that_is_missing_is_refused(given: Given, form: str) -> None:
    for name in ("ca.pem", "study.toml", "wages.certificate"):
        given.path(name).unlink()
        assert isinstance(given.refused(form, *FORMS[form]), InvalidInputError)


@every_form
def test_without_an_authority_there_is_no_form(given: Given, form: str) -> None:
    inputs = given.inputs(FORMS[form][0])
    place = inputs.index("--authority")
    made = CliRunner().invoke(certificate, [form, *inputs[:place], *inputs[place + 2 :], *FORMS[form][1:]])
    assert made.exit_code == 2
    assert "--authority" in made.output
    assert not Path(inputs[-1]).exists()


@every_form
def test_a_list_of_revoked_certificates_that_is_none_is_refused(given: Given, form: str) -> None:
    given.path("crl.pem").write_text("no list")
    error = given.refused(form, *FORMS[form], "--revoked", str(given.path("crl.pem")))
    assert "revocation" in str(error)
