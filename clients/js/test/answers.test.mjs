// An answer is decided once, kept before it is sent, and the same at every attempt, whatever comes back.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";

import { answerRound, fetchRound, stateOf, systemBytes } from "../dist/index.js";
import { FolderStore } from "../dist/folder.js";
import { AUTHORITY, OTHERS, signedBy, textOf } from "./signing.mjs";

const ID = "0".repeat(31) + "1";
const COUNTED = { status: 200, text: '{"counted": true}' };
const FACTS = {
  study_digest: "a".repeat(64),
  researcher: "rosa",
  question: "pet",
  size: 3,
  epsilon: "1",
  oracle: "krr",
  deadline: 9e9,
};
const PARAMETERS = { replacement: "11728895015837227237" }; // the least that keeps epsilon 1 with 3 categories

const refusal = (status, reason) => {
  const error = { reason, problem: "No.", where: "", remedy: "" };
  return { status, text: JSON.stringify({ error }) };
};

function described(changes = {}, state = "open") {
  const strata = [{ name: "everyone", population: 9, rate: "1" }];
  return JSON.stringify({ round: { round_id: ID, ...FACTS, parameters: PARAMETERS, strata, ...changes }, state });
}

const asked = (changes = {}) => ({
  server: "https://cloud.example.org:7443",
  round: ID,
  token: "1".repeat(32),
  stratum: "everyone",
  studyDigest: FACTS.study_digest,
  question: FACTS.question,
  size: 3,
  budget: "2",
  share: "2",
  study: "poll",
  authority: AUTHORITY,
  ...changes,
});

/** A network on which messages get these replies, one after the other; null is a broken connection. */
function network(replies, round = described(), signed = signedBy({}, textOf(round))) {
  const bodies = [];
  const send = async (url, body) => {
    if (body === null) return { status: 200, text: url.endsWith("/signed") ? signed : round };
    bodies.push(body);
    const reply = replies.length > 1 ? replies.shift() : replies[0];
    if (reply === null || reply === undefined) throw new Error("broken");
    return reply;
  };
  return { send, bodies };
}

const newFolder = () => mkdtempSync(join(tmpdir(), "veiltab-"));
const newStore = () => new FolderStore(newFolder());

/** Count the bytes that are drawn. */
function counting() {
  const drawn = [];
  const bytes = (count) => {
    drawn.push(count);
    return systemBytes(count);
  };
  return { bytes, drawn };
}

test("a spent token after a broken connection says that the report was counted", async () => {
  const { send, bodies } = network([null, null, refusal(409, "TOKEN_SPENT")]);
  const { bytes, drawn } = counting();
  const outcome = await answerRound(asked(), 1, newStore(), { send, bytes });
  assert.equal(outcome.state, "counted");
  assert.equal(bodies.length, 3);
  assert.equal(new Set(bodies).size, 1);
  assert.deepEqual(drawn, [8, 8, 1]); // the coin, the event, the noise: once
});

test("a spent token at the first attempt is refused, and another token carries the same report", async () => {
  const store = newStore();
  const first = network([refusal(409, "TOKEN_SPENT")]);
  const outcome = await answerRound(asked(), 1, store, first);
  assert.deepEqual([outcome.state, outcome.error.reason], ["refused", "TOKEN_SPENT"]);
  const second = network([COUNTED]);
  const { bytes, drawn } = counting();
  const again = await answerRound(asked({ token: "2".repeat(32) }), 2, store, { ...second, bytes });
  assert.equal(again.state, "counted");
  assert.deepEqual(second.bodies, [first.bodies[0].replace("1".repeat(32), "2".repeat(32))]);
  assert.deepEqual(drawn, []);
});

test("no refusal after a broken connection proves that the report was not counted", async () => {
  const store = newStore();
  for (const [status, reason] of [[403, "DENIED"], [410, "ROUND_CLOSED"], [400, "INVALID_INPUT"], [404, "NOT_FOUND"]]) {
    const outcome = await answerRound(asked(), 1, store, network([null, refusal(status, reason)]));
    assert.deepEqual([outcome.state, outcome.error.reason], ["waiting", reason]);
  }
  assert.equal((await answerRound(asked(), 1, store, network([refusal(409, "TOKEN_SPENT")]))).state, "counted");
});

test("a run that broke off counts as an attempt", async () => {
  const store = newStore();
  const onKept = () => {
    throw new Error("killed");
  };
  await assert.rejects(answerRound(asked(), 1, store, { ...network([COUNTED]), onKept }), /killed/);
  assert.equal(await stateOf(ID, store), "waiting");
  assert.equal((await answerRound(asked(), 1, store, network([refusal(409, "TOKEN_SPENT")]))).state, "counted");
});

test("what is not the server's own answer proves nothing", async () => {
  const page = "<html>Log in to this network</html>";
  for (const reply of [{ status: 200, text: page }, { status: 200, text: "{}" }, { status: 403, text: page }, { status: 302, text: "" },
    { status: 404, text: '{"error": "no"}' }, refusal(500, "INTERNAL"), refusal(503, "UNAVAILABLE")]) {
    const outcome = await answerRound(asked(), 1, newStore(), { ...network([reply]), seconds: 0 });
    assert.deepEqual([outcome.state, outcome.error], ["waiting", null], JSON.stringify(reply));
  }
});

test("a second call repeats the answer whatever its value, and sends nothing once it was counted", async () => {
  const store = newStore();
  const lost = network([null]);
  const first = await answerRound(asked(), 1, store, { ...lost, seconds: 0 });
  const found = network([COUNTED]);
  const second = await answerRound(asked({ token: "3".repeat(32) }), 2, store, found);
  assert.deepEqual([first.before, second.before, second.state], [false, true, "counted"]);
  assert.deepEqual(found.bodies, lost.bodies);
  const third = network([COUNTED]);
  const last = await answerRound(asked(), 0, store, third);
  assert.deepEqual([last.state, last.body, third.bodies], ["counted", null, []]);
});

test("the value is never kept, and the report no longer than it is needed", async () => {
  const folder = newFolder();
  const store = new FolderStore(folder);
  const key = `answer-${ID}`;
  await answerRound(asked(), 1, store, { ...network([null]), seconds: 0 });
  const kept = JSON.parse(await store.get(key));
  assert.deepEqual(Object.keys(kept).sort(), ["mark", "payload", "state", "stratum", "token"]);
  await answerRound(asked(), 1, store, network([COUNTED]));
  assert.equal(await store.get(key), '{"state":"counted"}');
  const others = readdirSync(folder).filter((name) => name !== key);
  assert.deepEqual(others.sort(), [`again-${ID}`, "ledger-0"]);
  assert.deepEqual(JSON.parse(await store.get("ledger-0")), JSON.parse(described()).round);
});

test("two pages at once send one report", async () => {
  for (let time = 0; time < 20; time += 1) {
    const folder = newFolder();
    let isSpent = false;
    const bodies = [];
    const means = network([COUNTED]);
    const send = async (url, body) => {
      if (body === null) return means.send(url, body);
      bodies.push(body);
      const reply = isSpent ? refusal(409, "TOKEN_SPENT") : COUNTED;
      isSpent = true;
      return reply;
    };
    const pages = [0, 1, 2].map((value) => answerRound(asked(), value, new FolderStore(folder), { send }));
    assert.deepEqual([...new Set((await Promise.all(pages)).map(({ state }) => state))], ["counted"]);
    assert.equal(new Set(bodies).size, 1);
  }
});

test("all rounds together stay within the budget, at once or one after the other", async () => {
  const store = newStore();
  const ids = ["2", "3", "4", "5"].map((digit) => digit.repeat(32));
  const answers = ids.map((id) => answerRound(asked({ round: id }), 1, store, network([COUNTED], described({ round_id: id }))));
  const settled = await Promise.allSettled(answers);
  assert.equal(settled.filter(({ status }) => status === "fulfilled").length, 2);
  assert.deepEqual(settled.filter(({ status }) => status === "rejected").map(({ reason }) => reason.reason), Array(2).fill("BUDGET_EXCEEDED"));
  const { send, bodies } = network([COUNTED]);
  await assert.rejects(answerRound(asked(), 1, store, { send }), { reason: "BUDGET_EXCEEDED" });
  assert.deepEqual(bodies, []);
});

test("a budget that is exactly spent is kept, in decimals that no double holds", async () => {
  const store = newStore();
  const epsilons = ["1.1", "2.2", "3.3"];
  for (const [place, epsilon] of epsilons.entries()) {
    const id = String(place).repeat(32);
    const means = network([COUNTED], described({ round_id: id, epsilon }));
    assert.equal((await answerRound(asked({ round: id, budget: "6.6", share: "6.6" }), 1, store, means)).state, "counted");
  }
});

test("a round that has another description than before is not answered", async () => {
  const folder = newFolder();
  const store = new FolderStore(folder);
  const broken = { get: (key) => store.get(key), put: (key, text) => store.put(key, text), keep: async (key, text) => {
    if (key.startsWith("answer")) throw new Error("killed");
    return store.keep(key, text);
  } };
  const { send, bodies } = network([COUNTED]);
  await assert.rejects(answerRound(asked(), 1, broken, { send }), /killed/);
  assert.deepEqual(bodies, []); // what is not kept is not sent
  const changed = network([COUNTED], described({ epsilon: "1.5" }));
  await assert.rejects(answerRound(asked(), 1, store, changed), { reason: "CONFLICT" });
  assert.equal((await answerRound(asked(), 1, store, { send })).state, "counted");
});

test("a round that was not foretold is not answered, and costs nothing", async () => {
  const folder = newFolder();
  const store = new FolderStore(folder);
  const rounds = [
    [described({ round_id: "9".repeat(32) }), asked()],
    [described({ study_digest: "b".repeat(64) }), asked()],
    [described({ question: "age" }), asked()],
    [described({ size: 4 }), asked()],
    [described({ epsilon: "2.1" }), asked()],
    [described(), asked({ stratum: "north" })],
    [described(), asked({ token: "x" })],
    [described(), asked({ server: "http://cloud.example.org" })],
    [described({}, "closed"), asked()],
  ];
  for (const [round, one] of rounds) {
    const { send, bodies } = network([COUNTED], round);
    await assert.rejects(answerRound(one, 1, store, { send }), { name: "Refusal" });
    assert.deepEqual(bodies, []);
  }
  assert.deepEqual(readdirSync(folder), []);
  for (const category of [-1, 3, 0.5, NaN, "1", null]) {
    await assert.rejects(answerRound(asked(), category, store, network([COUNTED])), { name: "Refusal" });
  }
});

test("the server's refusal of a round, and its silence, are said", async () => {
  const refused = async () => refusal(404, "NOT_FOUND");
  await assert.rejects(fetchRound(asked(), refused), { reason: "NOT_FOUND" });
  const silent = async () => {
    throw new Error("broken");
  };
  await assert.rejects(fetchRound(asked(), silent, 0), { reason: "UNAVAILABLE" });
});

test("a damaged answer is not sent, and no other is drawn", async () => {
  for (const text of ["", "{", '{"state": "sent"}']) {
    const folder = newFolder();
    writeFileSync(join(folder, `answer-${ID}`), text);
    const { send, bodies } = network([COUNTED]);
    await assert.rejects(answerRound(asked(), 1, new FolderStore(folder), { send }), { reason: "INTEGRITY" });
    assert.deepEqual(bodies, []);
  }
});

test("of texts that are kept at once the first one wins, and nothing else is left", async () => {
  const folder = newFolder();
  const texts = await Promise.all(Array.from({ length: 50 }, (_, number) => new FolderStore(folder).keep("key", String(number))));
  assert.equal(new Set(texts).size, 1);
  const store = new FolderStore(folder);
  assert.equal(await store.get("key"), texts[0]);
  await store.put("key", "another");
  assert.deepEqual([await store.get("key"), await store.get("none"), readdirSync(folder)], ["another", null, ["key"]]);
  await assert.rejects(store.put("../key", "x"), { name: "Refusal" });
});

for (const [what, changes] of Object.entries(OTHERS)) {
  test(`a round signed by ${what} is not answered`, async () => {
    const { send } = network([COUNTED], described(), signedBy(changes, textOf(described())));
    await assert.rejects(answerRound(asked(), 1, newStore(), { send }), /did not sign this round/);
  });
}

test("a signature of another round, or none, is refused", async () => {
  for (const signed of [signedBy({}, textOf(described({ deadline: 8e9 }))), '{"text": ""}', ""]) {
    const { send, bodies } = network([COUNTED], described(), signed);
    await assert.rejects(answerRound(asked(), 1, newStore(), { send }), { name: "Refusal" });
    assert.deepEqual(bodies, []);
  }
});

test("a researcher's rounds cost no more than its share, and another's may follow", async () => {
  const store = newStore();
  const next = { round_id: "0".repeat(31) + "2" };
  const rita = { ...next, researcher: "rita" };
  const invited = asked({ share: "1.5", budget: "9" });
  const { state } = await answerRound(invited, 1, store, network([COUNTED]));
  assert.equal(state, "counted");
  const later = { ...invited, round: next.round_id };
  await assert.rejects(answerRound(later, 1, store, network([COUNTED], described(next))), /the rounds of researcher rosa/);
  const signed = signedBy({ name: "veiltab://poll/researcher/rita" }, textOf(described(rita)));
  assert.equal((await answerRound(later, 1, store, network([COUNTED], described(rita), signed))).state, "counted");
});
