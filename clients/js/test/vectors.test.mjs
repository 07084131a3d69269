// The vectors that the product made, drawn and refused by this client.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { decide, drawSymbols, encode, hashesOf, readRound, supportOf } from "../dist/index.js";

const PATH = process.env.VEILTAB_VECTORS ?? new URL("../../../tests/vectors/reports.json", import.meta.url);
const vectors = JSON.parse(readFileSync(PATH, "utf8"));

/** Play bytes in their order; what is left tells whether all were consumed. */
function played(hex) {
  const data = Buffer.from(hex, "hex");
  let place = 0;
  const bytes = (count) => {
    place += count;
    assert.ok(place <= data.length, "more bytes are drawn than there are");
    return Uint8Array.from(data.subarray(place - count, place));
  };
  return { bytes, left: () => data.length - place };
}

for (const one of vectors.reports) {
  test(`report: ${one.name}`, () => {
    const round = readRound(JSON.stringify(one.answer));
    const { bytes, left } = played(one.random);
    const payload = decide(round, one.stratum, one.category, bytes);
    assert.equal(left(), 0);
    assert.equal(payload && encode(one.token, one.stratum, payload), one.body);
    if (one.body !== null) supportOf(round, one.body);
  });
}

for (const one of vectors.refused_reports) {
  test(`no report: ${one.name}`, () => {
    const round = readRound(JSON.stringify(one.answer));
    assert.throws(() => supportOf(round, one.body), { name: "Refusal" });
  });
}

for (const one of vectors.refused_rounds) {
  test(`no round: ${one.name}`, () => {
    assert.throws(() => readRound(JSON.stringify(one.answer)), { name: "Refusal" });
  });
}

for (const one of vectors.uniform) {
  test(`uniform symbols of ${one.size}`, () => {
    const { bytes, left } = played(one.random);
    assert.deepEqual(drawSymbols(one.size, one.symbols.length, bytes), one.symbols);
    assert.equal(left(), 0);
  });
}

for (const one of vectors.hashes) {
  test(`hashes of ${one.size} values to ${one.g} symbols`, () => {
    assert.deepEqual(hashesOf(Buffer.from(one.seed, "hex"), one.size, one.g), one.symbols);
  });
}

test("a field that nobody knows is refused", () => {
  const { answer } = vectors.reports[0];
  assert.throws(() => readRound(JSON.stringify({ ...answer, round: { ...answer.round, extra: 1 } })), { name: "Refusal" });
  assert.throws(() => readRound(JSON.stringify({ ...answer, state: "paused" })), { name: "Refusal" });
});
