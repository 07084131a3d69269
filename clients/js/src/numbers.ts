/** Exact numbers: decimals as fractions of whole numbers, and a lower bound of an exponential. */

import { check } from "./errors.js";

/** A number that is not negative: numerator / denominator. */
export interface Fraction {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

/** 2^64: probabilities are whole numbers of 1/UNIT. */
export const UNIT = 1n << 64n;

const DECIMAL = /^([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]{1,3}))?$/;
const STEP = 10n ** 12n;
const BITS = 256n;
const HALVINGS = 8n;

/** Read a decimal number such as 0.5 or 1E-18, exactly; refuse any other text. */
export function readDecimal(text: unknown, name: string): Fraction {
  const match = typeof text === "string" && text.length <= 100 ? DECIMAL.exec(text) : null;
  check(match !== null, `${name} is not a decimal number.`);
  const [, whole = "", part = "", exponent = "0"] = match;
  const shift = Number(exponent) - part.length;
  check(Math.abs(shift) <= 200, `${name} has too many digits.`);
  const digits = BigInt(whole + part);
  return shift < 0
    ? { numerator: digits, denominator: 10n ** BigInt(-shift) }
    : { numerator: digits * 10n ** BigInt(shift), denominator: 1n };
}

/** Say whether a <= b. */
export function isAtMost(a: Fraction, b: Fraction): boolean {
  return a.numerator * b.denominator <= b.numerator * a.denominator;
}

/** Add two fractions. */
export function add(a: Fraction, b: Fraction): Fraction {
  return {
    numerator: a.numerator * b.denominator + b.numerator * a.denominator,
    denominator: a.denominator * b.denominator,
  };
}

/** Return floor(x 2^64). */
export function unitsOf(x: Fraction): bigint {
  return (x.numerator * UNIT) / x.denominator;
}

/**
 * Say whether a likelihood ratio keeps an epsilon: ratio <= e^epsilon, epsilon cut to a multiple of 1e-12.
 *
 * Every step of the exponential is rounded down, so that a doubtful ratio is refused.
 */
export function keepsEpsilon(ratio: Fraction, epsilon: Fraction): boolean {
  const steps = (epsilon.numerator * STEP) / epsilon.denominator;
  return ratio.numerator << BITS <= ratio.denominator * expBelow(steps);
}

/** Return a whole number of 2^-256 that is at most e^x, x = steps 1e-12: the series of e^(x / 2^8), squared 8 times. */
function expBelow(steps: bigint): bigint {
  const x = (steps << (BITS - HALVINGS)) / STEP;
  let sum = 0n;
  let term = 1n << BITS;
  for (let n = 1n; term > 0n; n += 1n) {
    sum += term;
    term = ((term * x) >> BITS) / n;
  }
  for (let n = 0n; n < HALVINGS; n += 1n) sum = (sum * sum) >> BITS;
  return sum;
}
