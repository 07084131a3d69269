"""The parties of the study "survey"."""

from veiltab.common.rpc.parties.identity import Party, Role

ALICE, BOB = (Party(study="survey", role=Role.CURATOR, name=name) for name in ("alice", "bob"))
CLOUD = Party(study="survey", role=Role.SERVER, name="cloud")
ROSA, RITA = (Party(study="survey", role=Role.RESEARCHER, name=name) for name in ("rosa", "rita"))
ANA = Party(study="survey", role=Role.ANALYST, name="ana")
FLEET = Party(study="survey", role=Role.NODE, name="fleet")
