// The laws of draws: every word next to a threshold, every word of 8 and 16 bits, and a million reports of each oracle.
import assert from "node:assert/strict";
import test from "node:test";

import { decide, drawDistinct, drawEvents, drawSymbols, encode, readRound, supportOf, systemBytes } from "../dist/index.js";

const UNIT = 1n << 64n;
const DRAWS = 1_000_000;

function bytesOf(words, width) {
  const out = new Uint8Array(width * words.length);
  words.forEach((word, place) => {
    for (let byte = 0; byte < width; byte += 1) out[width * place + byte] = Number((BigInt(word) >> BigInt(8 * byte)) & 255n);
  });
  return out;
}


test("an event happens exactly when its word is below", () => {
  for (const units of [1n, 2n ** 32n, 2n ** 53n + 1n, 2n ** 63n, 12345678901234567890n, UNIT - 1n, UNIT]) {
    const near = [0n, 1n, units - 2n, units - 1n, units, units + 1n, units + 2n, UNIT - 2n, UNIT - 1n];
    const words = near.filter((word) => 0n <= word && word < UNIT);
    const happened = drawEvents(words.length, units, () => bytesOf(words, 8));
    assert.deepEqual(happened, words.map((word) => word < units));
  }
});

test("all words of 8 bits give every symbol equally often", () => {
  for (const size of [2, 3, 5, 7, 16, 36, 63, 64, 84, 85, 127, 128, 253, 254, 255, 256].filter((d) => (256 % d) * 64 <= 256)) {
    const counts = new Array(size).fill(0);
    for (let word = 0; word < 256; word += 1) {
      let turns = 0;
      const [symbol] = drawSymbols(size, 1, (count, turn) => {
        turns = turn;
        return turn === 0 ? Uint8Array.of(word) : new Uint8Array(count);
      });
      if (turns === 0) counts[symbol] += 1;
    }
    assert.deepEqual([...new Set(counts)], [Math.floor(256 / size)], `size ${size}`);
  }
});

test("all words of 16 bits give every symbol equally often", () => {
  for (const size of [13, 20, 100, 257, 1000, 1023, 65_535, 65_536]) {
    const words = Array.from({ length: 65_536 }, (_, word) => word);
    let again = 0;
    const symbols = drawSymbols(size, words.length, (count, turn) => {
      if (turn > 0) again += count / 2;
      return turn === 0 ? bytesOf(words, 2) : new Uint8Array(count);
    });
    assert.equal(again, 65_536 % size, `rejected of ${size}`);
    const counts = new Array(size).fill(0);
    for (const symbol of symbols) counts[symbol] += 1;
    counts[0] -= again;
    assert.deepEqual([...new Set(counts)], [Math.floor(65_536 / size)], `size ${size}`);
  }
});

test("words of 32 bits next to every limit give the symbol of their interval", () => {
  for (const size of [40_000, 40_001, 64_000, 48_000]) {
    const length = Math.floor(2 ** 32 / size);
    for (const symbol of [0, 1, 2, size >> 1, size - 2, size - 1]) {
      for (const word of [length * symbol, length * symbol + 1, length * (symbol + 1) - 1]) {
        assert.deepEqual(drawSymbols(size, 1, () => bytesOf([word], 4)), [symbol]);
      }
    }
    const rejected = [length * size, 2 ** 32 - 1].filter((word) => word >= length * size && word < 2 ** 32);
    for (const word of rejected) {
      assert.deepEqual(drawSymbols(size, 1, (_, turn) => bytesOf([turn === 0 ? word : 0], 4)), [0]);
    }
  }
});

test("a source that repeats itself ends, and does not hang", () => {
  assert.throws(() => drawSymbols(20, 1, (count) => new Uint8Array(count).fill(255)), { reason: "INTEGRITY" });
  assert.throws(() => drawDistinct(9, 3, (count) => new Uint8Array(count)), { reason: "INTEGRITY" });
});

/** Return the statistic beyond which a chi-square of some degrees of freedom lies with probability below 1e-9. */
function limit(degrees) {
  const spread = 2 / (9 * degrees);
  return degrees * (1 - spread + 6.2 * Math.sqrt(spread)) ** 3;
}

function assertLaw(counts, law) {
  const total = [...counts.values()].reduce((sum, one) => sum + one, 0);
  assert.equal([...counts.keys()].filter((key) => !law.has(key)).length, 0);
  let statistic = 0;
  for (const [key, chance] of law) statistic += ((counts.get(key) ?? 0) - total * chance) ** 2 / (total * chance);
  assert.ok(statistic < limit(law.size - 1), `chi-square ${statistic} of ${law.size} cells`);
}

function roundOf(oracle, size, parameters, rate = "1") {
  const strata = [{ name: "everyone", population: 9, rate }];
  const facts = { round_id: "0".repeat(32), study_digest: "0".repeat(64), researcher: "rosa", question: "pet", deadline: 9e9 };
  const round = { ...facts, size, epsilon: "9", oracle, parameters, strata };
  return readRound(JSON.stringify({ round, state: "open" }));
}

const share = (part) => String((UNIT * BigInt(Math.round(part * 1000))) / 1000n);

/** The operating system's bytes, a megabyte at a time. */
function manyBytes() {
  let pool = systemBytes(2 ** 20);
  let place = 0;
  return (count) => {
    if (place + count > pool.length) [pool, place] = [systemBytes(2 ** 20), 0];
    place += count;
    return pool.subarray(place - count, place);
  };
}

/** Draw many reports of category 1, and count them by what they say. */
function counted(round, draws, key) {
  const bytes = manyBytes();
  const counts = new Map();
  for (let number = 0; number < draws; number += 1) {
    const payload = decide(round, "everyone", 1, bytes);
    const cell = payload === null ? "silent" : key(payload);
    counts.set(cell, (counts.get(cell) ?? 0) + 1);
  }
  return counts;
}

const hex = (bytes) => bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");

test("krr has its law, and the coin its rate", () => {
  const counts = counted(roundOf("krr", 5, { replacement: share(0.4) }, "0.6"), DRAWS, ({ category }) => category);
  const law = [0, 1, 2, 3, 4].map((symbol) => [hex([0, 0, 0, symbol]), 0.6 * (symbol === 1 ? 0.68 : 0.08)]);
  assertLaw(counts, new Map([...law, ["silent", 0.4]]));
});

test("oue has its law", () => {
  const counts = counted(roundOf("oue", 3, { q64: share(0.2) }), DRAWS, ({ bits }) => bits);
  const law = new Map();
  for (let pattern = 0; pattern < 8; pattern += 1) {
    law.set(hex([pattern]), [0, 2].reduce((product, place) => product * ((pattern >> place) & 1 ? 0.2 : 0.8), 0.5));
  }
  assertLaw(counts, law);
});

test("ss has its law", () => {
  const counts = counted(roundOf("ss", 5, { w: "2", p64: share(0.7) }), DRAWS, ({ subset }) => subset);
  const law = new Map();
  for (let a = 0; a < 5; a += 1) {
    for (let b = a + 1; b < 5; b += 1) law.set(hex([a, b]), [a, b].includes(1) ? 0.7 / 4 : 0.3 / 6);
  }
  assertLaw(counts, law);
});

test("olh has its law: its response is that of krr, its hashes are uniform", () => {
  const round = roundOf("olh", 2, { g: "3", replacement: share(0.3) });
  const bytes = manyBytes();
  const counts = new Map();
  for (let number = 0; number < DRAWS / 50; number += 1) {
    const payload = decide(round, "everyone", 1, bytes);
    const cell = String(supportOf(round, encode("0".repeat(32), "everyone", payload)));
    counts.set(cell, (counts.get(cell) ?? 0) + 1);
  }
  const own = 0.7 + 0.1;
  assertLaw(counts, new Map([["", ((1 - own) * 2) / 3], ["0", (1 - own) / 3], ["1", (own * 2) / 3], ["0,1", own / 3]]));
});
