/** The public description of a round, and what a node checks of it before it answers. */

import { check } from "./errors.js";
import { type Fraction, UNIT, isAtMost, keepsEpsilon, readDecimal } from "./numbers.js";

/** How nodes randomise, with its exact whole numbers. */
export type Oracle =
  | { readonly name: "krr"; readonly replacement: bigint }
  | { readonly name: "oue"; readonly q64: bigint }
  | { readonly name: "olh"; readonly g: number; readonly replacement: bigint }
  | { readonly name: "ss"; readonly w: number; readonly p64: bigint };

/** One public group of nodes. */
export interface Stratum {
  readonly name: string;
  readonly population: number;
  /** Probability with which each of its nodes reports. */
  readonly rate: Fraction;
}

/** Everything public about a round. */
export interface Round {
  readonly id: string;
  readonly studyDigest: string;
  readonly researcher: string;
  readonly question: string;
  /** Categories d. */
  readonly size: number;
  /** Most that one report costs its node, nats; as the server wrote it. */
  readonly epsilon: string;
  readonly oracle: Oracle;
  readonly strata: readonly Stratum[];
  /** Unix seconds. */
  readonly deadline: number;
  readonly state: "open" | "closed";
  /** Its canonical text: a round that is described in another way is another round. */
  readonly text: string;
}

const FIELDS = [
  "round_id",
  "study_digest",
  "researcher",
  "question",
  "size",
  "epsilon",
  "oracle",
  "parameters",
  "strata",
  "deadline",
] as const;
const NAME = /^[a-z0-9]([a-z0-9_-]{0,38}[a-z0-9])?$/;
const LEAST_RATE = readDecimal("1e-18", "rate");
const ONE = readDecimal("1", "rate");
const LEAST_EPSILON = readDecimal("1e-12", "epsilon");
const MOST_EPSILON = readDecimal("100", "epsilon");

/**
 * Read what a server answers about a round; refuse what this client does not know for sure.
 *
 * @throws Refusal - it is malformed, or its randomiser costs more than the epsilon that it states
 */
export function readRound(answer: string): Round {
  const whole = fields(parse(answer), ["round", "state"], "The answer");
  const facts = fields(whole["round"], FIELDS, "The round");
  const { state } = whole;
  check(state === "open" || state === "closed", "The state of the round is not known.");
  const size = wholeNumber(facts["size"], 2, 65_536, "The number of categories");
  const listed = facts["strata"];
  check(Array.isArray(listed) && listed.length >= 1 && listed.length <= 1000, "The round has no strata, or too many.");
  const strata = listed.map(readStratum);
  check(new Set(strata.map((one) => one.name)).size === strata.length, "A stratum is named twice.");
  const round: Round = {
    id: readText(facts["round_id"], /^[0-9a-f]{32}$/, "The id"),
    studyDigest: readText(facts["study_digest"], /^[0-9a-f]{64}$/, "The digest of the study"),
    researcher: readText(facts["researcher"], NAME, "The researcher"),
    question: readText(facts["question"], NAME, "The question"),
    size,
    epsilon: readText(facts["epsilon"], /./, "epsilon"),
    oracle: readOracle(facts["oracle"], facts["parameters"], size),
    strata,
    deadline: wholeNumber(facts["deadline"], 0, 253_402_300_799, "The deadline"),
    state,
    text: textOf(facts),
  };
  const epsilon = readDecimal(round.epsilon, "epsilon");
  check(isAtMost(LEAST_EPSILON, epsilon) && isAtMost(epsilon, MOST_EPSILON), "epsilon is not from 1e-12 to 100.");
  check(keepsEpsilon(ratioOf(round.oracle, size), epsilon), "The randomiser costs more than the epsilon of the round.");
  return round;
}

/** Return the canonical text of the round that a researcher signed, whose whole numbers may exceed 2^53. */
export function roundText(signed: string): string {
  const quoted = signed.replace(/("(?:g|replacement|q64|w|p64)": ?)([0-9]{1,20})(?=[,}])/g, '$1"$2"');
  return textOf(fields(parse(quoted), FIELDS, "The signed round"));
}

function textOf(facts: Record<string, unknown>): string {
  return JSON.stringify(facts, [...FIELDS, "name", "population", "rate", "g", "replacement", "q64", "w", "p64"]);
}

/** Return the stratum of a name; refuse any other name. */
export function stratumOf(round: Round, name: string): Stratum {
  const stratum = round.strata.find((one) => one.name === name);
  check(stratum !== undefined, "There is no such stratum in this round.");
  return stratum;
}

/** Return the largest ratio of the probabilities of one report under two values, exactly. */
export function ratioOf(oracle: Oracle, size: number): Fraction {
  switch (oracle.name) {
    case "krr":
      return ratioOfResponse(oracle.replacement, size);
    case "olh":
      return ratioOfResponse(oracle.replacement, oracle.g);
    case "oue":
      return { numerator: UNIT - oracle.q64, denominator: oracle.q64 };
    case "ss":
      return {
        numerator: oracle.p64 * BigInt(size - oracle.w),
        denominator: (UNIT - oracle.p64) * BigInt(oracle.w),
      };
    default:
      return never(oracle);
  }
}

function ratioOfResponse(replacement: bigint, cells: number): Fraction {
  return { numerator: replacement + BigInt(cells) * (UNIT - replacement), denominator: replacement };
}

function readOracle(name: unknown, parameters: unknown, size: number): Oracle {
  const units = (facts: Record<string, unknown>, key: string, below: bigint = UNIT): bigint => {
    const text = facts[key];
    check(typeof text === "string" && /^[0-9]{1,20}$/.test(text), `${key} is not a whole number.`);
    check(0n < BigInt(text) && BigInt(text) < below, `${key} is out of range.`);
    return BigInt(text);
  };
  switch (name) {
    case "krr":
      return { name, replacement: units(fields(parameters, ["replacement"], "krr"), "replacement") };
    case "oue":
      return { name, q64: units(fields(parameters, ["q64"], "oue"), "q64", UNIT / 2n) };
    case "olh": {
      const facts = fields(parameters, ["g", "replacement"], "olh");
      const g = Number(units(facts, "g", 65_537n));
      check(g >= 2, "g is out of range.");
      return { name, g, replacement: units(facts, "replacement") };
    }
    case "ss": {
      const facts = fields(parameters, ["w", "p64"], "ss");
      const w = units(facts, "w", BigInt(size) / 2n + 1n);
      const p64 = units(facts, "p64");
      check(p64 * BigInt(size) > w * UNIT, "p64 is out of range.");
      return { name, w: Number(w), p64 };
    }
    default:
      check(false, "This client does not know the randomiser of the round.", "Ask for a newer client.");
  }
}

function readStratum(value: unknown): Stratum {
  const facts = fields(value, ["name", "population", "rate"], "A stratum");
  const rate = readDecimal(facts["rate"], "rate");
  check(isAtMost(LEAST_RATE, rate) && isAtMost(rate, ONE), "A rate is not above 0 and at most 1.");
  return {
    name: readText(facts["name"], NAME, "A stratum"),
    population: wholeNumber(facts["population"], 1, 1_000_000_000, "A population"),
    rate,
  };
}

/** Parse JSON; refuse what is none. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return check(false, "This is not JSON.", "Check the address of the server.");
  }
}

/** Return an object that has exactly these fields. */
export function fields(value: unknown, names: readonly string[], what: string): Record<string, unknown> {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  check(isObject, `${what} is not a message that this client knows.`);
  const keys = Object.keys(value).sort().join();
  check(keys === [...names].sort().join(), `${what} does not have the fields ${names.join(", ")}, and no other.`);
  return value as Record<string, unknown>;
}

function readText(value: unknown, shape: RegExp, what: string): string {
  check(typeof value === "string" && shape.test(value), `${what} is not as it must be.`);
  return value;
}

function wholeNumber(value: unknown, least: number, most: number, what: string): number {
  const isWhole = typeof value === "number" && Number.isInteger(value) && value >= least && value <= most;
  check(isWhole, `${what} is not a whole number from ${least} to ${most}.`);
  return value;
}

/** Refuse a case that cannot be. */
export function never(value: never): never {
  throw new TypeError(`unknown case ${String(value)}`);
}
