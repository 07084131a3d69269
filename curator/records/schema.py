"""The tables of a curator's database."""

SCHEMA = """
CREATE TABLE release (
    id TEXT PRIMARY KEY, researcher TEXT NOT NULL, request TEXT NOT NULL, state TEXT NOT NULL,
    waiting_for TEXT NOT NULL DEFAULT '', failure TEXT NOT NULL DEFAULT '', spec TEXT, sample_check BLOB,
    seconds TEXT NOT NULL DEFAULT '{}', bytes_uploaded INTEGER NOT NULL DEFAULT 0, created INTEGER NOT NULL,
    since INTEGER NOT NULL, study_digest TEXT NOT NULL, part_of TEXT NOT NULL DEFAULT '',
    number INTEGER NOT NULL DEFAULT 0, choice TEXT);
CREATE INDEX release_part_of ON release (part_of, number);
CREATE INDEX release_state ON release (state, since);
CREATE VIEW asked AS SELECT * FROM release WHERE part_of = '';
CREATE TABLE id_of_table (id TEXT PRIMARY KEY, release_id TEXT NOT NULL);
CREATE INDEX id_of_table_release ON id_of_table (release_id);

CREATE TABLE decision (
    release_id TEXT NOT NULL REFERENCES release(id), attribute TEXT NOT NULL, verdict TEXT NOT NULL, expires INTEGER,
    decided_by TEXT NOT NULL, time INTEGER NOT NULL, person TEXT NOT NULL, reason TEXT NOT NULL, rule INTEGER,
    rule_text TEXT NOT NULL, PRIMARY KEY (release_id, attribute));
CREATE TABLE approval (
    release_id TEXT NOT NULL REFERENCES release(id), attribute TEXT NOT NULL, person TEXT NOT NULL,
    time INTEGER NOT NULL, reason TEXT NOT NULL, expires INTEGER, request_digest BLOB NOT NULL,
    PRIMARY KEY (release_id, attribute, person));

CREATE TABLE plan (
    release_id TEXT NOT NULL REFERENCES release(id), question BLOB NOT NULL, answer TEXT NOT NULL,
    PRIMARY KEY (release_id, question));
CREATE TABLE card (
    spec BLOB PRIMARY KEY, release_id TEXT NOT NULL REFERENCES release(id), rows TEXT NOT NULL);
CREATE TABLE charge (
    question BLOB PRIMARY KEY, release_id TEXT NOT NULL REFERENCES release(id), answer TEXT NOT NULL);

CREATE TABLE coin (id TEXT PRIMARY KEY, share BLOB NOT NULL, value BLOB);
CREATE TABLE commitment (
    coin_id TEXT NOT NULL, curator TEXT NOT NULL, commitment BLOB NOT NULL, PRIMARY KEY (coin_id, curator));
CREATE TABLE opening (
    coin_id TEXT NOT NULL, curator TEXT NOT NULL, given INTEGER NOT NULL DEFAULT 0,
    received INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (coin_id, curator));
CREATE TABLE aborted_toss (
    release_id TEXT NOT NULL REFERENCES release(id), party TEXT NOT NULL, is_claim INTEGER NOT NULL, why TEXT NOT NULL,
    PRIMARY KEY (release_id, party));

CREATE TABLE pad (
    release_id TEXT NOT NULL, attribute TEXT NOT NULL, key BLOB NOT NULL, digest BLOB NOT NULL,
    PRIMARY KEY (release_id, attribute));
CREATE TABLE spent_key (fingerprint BLOB PRIMARY KEY);
CREATE TABLE spent_shared_key (fingerprint BLOB PRIMARY KEY, release_id TEXT NOT NULL);
CREATE TABLE canary_key (release_id TEXT PRIMARY KEY REFERENCES release(id), key BLOB NOT NULL);

CREATE TABLE server_noise (release_id TEXT PRIMARY KEY, digest BLOB NOT NULL);
CREATE TABLE published_column (
    release_id TEXT NOT NULL REFERENCES release(id), attribute TEXT NOT NULL, digest BLOB NOT NULL,
    canary_digest BLOB, PRIMARY KEY (release_id, attribute));
CREATE TABLE published_places (release_id TEXT PRIMARY KEY REFERENCES release(id), digest BLOB NOT NULL);
CREATE TABLE receipt (
    release_id TEXT NOT NULL REFERENCES release(id), tester TEXT NOT NULL, receipt TEXT NOT NULL,
    PRIMARY KEY (release_id, tester));
CREATE TABLE canary_changes (
    release_id TEXT NOT NULL REFERENCES release(id), curator TEXT NOT NULL, list BLOB NOT NULL,
    PRIMARY KEY (release_id, curator));

CREATE TABLE table_version (content_digest TEXT PRIMARY KEY, version TEXT NOT NULL);
CREATE TABLE alignment (id TEXT PRIMARY KEY, population INTEGER NOT NULL, digest TEXT NOT NULL,
    matched INTEGER NOT NULL);
CREATE TABLE linkage (
    alignment_id TEXT PRIMARY KEY, report TEXT NOT NULL, sample BLOB NOT NULL, content_digest TEXT NOT NULL);
CREATE TABLE join_session (
    alignment_id TEXT NOT NULL, peer TEXT NOT NULL, part BLOB NOT NULL, name TEXT NOT NULL DEFAULT '',
    secret BLOB NOT NULL DEFAULT x'', failed INTEGER NOT NULL DEFAULT 0, version TEXT NOT NULL,
    PRIMARY KEY (alignment_id, peer));
CREATE TABLE join_pass (
    session TEXT NOT NULL, number INTEGER NOT NULL, challenge BLOB NOT NULL DEFAULT x'',
    asked BLOB NOT NULL DEFAULT x'', PRIMARY KEY (session, number));
CREATE TABLE join_part (curator TEXT PRIMARY KEY, begun BLOB NOT NULL, sessions INTEGER NOT NULL DEFAULT 0);
CREATE TABLE fill_key (one INTEGER PRIMARY KEY CHECK (one = 1), key BLOB NOT NULL);
CREATE TABLE row_order (alignment_id TEXT PRIMARY KEY, key BLOB NOT NULL);

CREATE TABLE served_policy (
    path TEXT, rules INTEGER NOT NULL, budget TEXT, persons INTEGER NOT NULL, digest TEXT NOT NULL);
CREATE TABLE served_study (source BLOB NOT NULL);
CREATE TABLE served_table (path TEXT NOT NULL, size INTEGER NOT NULL, modified INTEGER NOT NULL);

CREATE TABLE reservation (release_id TEXT PRIMARY KEY, entry TEXT NOT NULL, epsilon TEXT NOT NULL);
CREATE TABLE ledger (
    number INTEGER PRIMARY KEY, release_id TEXT NOT NULL UNIQUE, entry TEXT NOT NULL, epsilon TEXT NOT NULL,
    digest BLOB NOT NULL);
CREATE TABLE price (release_id TEXT PRIMARY KEY, mu TEXT NOT NULL, slack TEXT NOT NULL);
CREATE TABLE view_price (view TEXT PRIMARY KEY, mu TEXT NOT NULL);
CREATE TABLE witness (curator TEXT PRIMARY KEY, length INTEGER NOT NULL, head BLOB NOT NULL);
CREATE TABLE seen_before (
    release_id TEXT, curator TEXT, length INTEGER NOT NULL, PRIMARY KEY (release_id, curator));
CREATE TABLE checkpoint (curator TEXT, release_id TEXT, line TEXT NOT NULL, PRIMARY KEY (curator, release_id));
CREATE TABLE doubt (
    who TEXT PRIMARY KEY, length INTEGER NOT NULL, head BLOB NOT NULL, is_set_aside INTEGER NOT NULL DEFAULT 0);

CREATE TABLE audit (
    number INTEGER PRIMARY KEY, line TEXT NOT NULL, digest BLOB NOT NULL,
    release_id TEXT GENERATED ALWAYS AS (json_extract(line, '$.release')) VIRTUAL);
CREATE INDEX audit_release ON audit (release_id);
CREATE TRIGGER audit_is_not_altered BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_is_not_cut BEFORE DELETE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;

CREATE TABLE notices_wanted (one INTEGER PRIMARY KEY CHECK (one = 1), since INTEGER NOT NULL);
CREATE TABLE delivery (
    number INTEGER PRIMARY KEY, kind TEXT NOT NULL, subject TEXT NOT NULL, facts TEXT NOT NULL, channel TEXT NOT NULL,
    created INTEGER NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, due INTEGER, sent INTEGER,
    problem TEXT NOT NULL DEFAULT '', UNIQUE (kind, subject, channel));
CREATE INDEX delivery_due ON delivery (channel, due) WHERE sent IS NULL;
"""
