"""The fields that the registry of deployments documents (July 2026), as a JSON Schema: names, types, words of lists."""

from veiltab.deploy.registry.registry_entry import PRODUCTS, SECTORS

TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT, "minItems": 1}


def words(*known: str) -> dict[str, object]:
    return TEXT | {"enum": list(known)}


def section(required: str = "", **fields: object) -> dict[str, object]:
    return {"type": "object", "additionalProperties": False, "required": required.split(), "properties": fields}


def section_of_texts(names: str, **fields: object) -> dict[str, object]:
    texts: dict[str, object] = dict.fromkeys(names.split(), TEXT)
    return section("", **(texts | fields))


BASIC = section(
    "name data_curators description intended_use data_product_type data_product_region publication_date",
    name=TEXT,
    data_curators=TEXTS,
    intended_use=TEXT,
    data_product_type=words(*PRODUCTS),
    data_product_region=TEXT,
    description=TEXT,
    publication_date=TEXT | {"format": "date"},
    data_product_sector=words(*SECTORS),
)

DEPLOYMENT = section(
    "basic",
    basic=BASIC,
    dp_variant=section_of_texts(
        "data_domain unprotected_quantities",
        variant_name=words("Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"),
    ),
    privacy_loss=section_of_texts(
        "privacy_unit privacy_unit_details",
        privacy_parameters=section(
            epsilon={"type": "number"}, delta={"type": ["number", "string"]}, rho={"type": "number"}
        ),
        privacy_parameters_details={},
    ),
    deployment_model=section_of_texts(
        "model_name_details actors release_type_details",
        model_name=words("Local", "Central", "Shuffle", "Federated", "Varies"),
        release_type=words("One release", "Many releases"),
        data_source_type=words("Static", "Dynamic"),
        data_source_type_details={},
        access_type=words("Interactive", "Non-interactive"),
        access_type_details=TEXT,
    ),
    accounting=section_of_texts("post_processing composition"),
    implementation=section_of_texts("preprocessing_and_hyperparameter_tuning mechanisms justification"),
    administrative=section("registry_authors", sources=TEXT, notes=TEXT, registry_authors=TEXTS),
)

SCHEMA = section(
    "url_slug status tier deployment",
    url_slug=TEXT,
    status=words("Converted", "Draft", "Pending", "Changes Required", "Approved"),
    tier={"enum": [1, 2, 3]},
    deployment=DEPLOYMENT,
)
