/** A node's answer to a round: decided once, kept, sent until it is counted. */

import { type Bytes, systemBytes } from "./draws.js";
import { Refusal, check } from "./errors.js";
import { type Fraction, add, isAtMost, readDecimal } from "./numbers.js";
import { type Payload, decide, encode, hexOf } from "./randomise.js";
import { type Round, parse, readRound, stratumOf } from "./round.js";
import { type Signers, checkSigned } from "./signed.js";
import { type Send, type ServerError, insist, sendByFetch, silenceRefusal } from "./sending.js";
import type { Store } from "./store.js";

/** What a node is asked, as it knows from elsewhere than from the server: from the study file, and from its letter. */
export interface Invitation extends Signers {
  /** Address of the server, such as https://cloud.example.org:7443. */
  readonly server: string;
  /** Id of the round, 32 hexadecimal digits. */
  readonly round: string;
  /** The node's own one-time token, 32 hexadecimal digits. */
  readonly token: string;
  /** Its public group; everyone if the study has none. */
  readonly stratum: string;
  /** SHA-256 of the study file. */
  readonly studyDigest: string;
  /** Name of the question in the study file. */
  readonly question: string;
  /** Its number of categories. */
  readonly size: number;
  /** Most that all rounds together may cost this node, nats, as a decimal number: budget_epsilon of the study file. */
  readonly budget: string;
  /** Most that the rounds of this researcher may cost this node, nats: its share of the study file, or an equal one. */
  readonly share: string;
}

/** How an answer stands. */
export interface Outcome {
  /** counted; silent if the coin said not to report; waiting while no answer came; refused if it certainly was not counted. */
  readonly state: "counted" | "silent" | "waiting" | "refused";
  /** The message that was or will be sent; null if there is none, or if it was counted before this call. */
  readonly body: string | null;
  /** Whether an earlier call had decided; the category of this one was not used then. */
  readonly before: boolean;
  /** Why the server refused. */
  readonly error: ServerError | null;
}

/** What an answer may be given besides. */
export interface Means {
  readonly send?: Send;
  /** Of the coin and the noise: the operating system's, except in tests. */
  readonly bytes?: Bytes;
  /** For how long attempts to send begin. */
  readonly seconds?: number;
  /** The round, if it was fetched before. */
  readonly round?: Round;
  /** Told of the message, null for none, once it is kept and before it is sent. */
  readonly onKept?: (body: string | null) => void | Promise<void>;
}

/** What is kept of an answer. The value itself is not. */
type Decision = { readonly state: "counted" } | { readonly state: "silent" } | Waiting;

interface Waiting {
  readonly state: "waiting" | "refused";
  readonly token: string;
  readonly stratum: string;
  readonly payload: Payload;
  /** Random, so that no two pages take the same draw for their own. */
  readonly mark: string;
}

const SECONDS = 60;

/**
 * Fetch the description of a round, and check that it asks what was foretold.
 *
 * @throws Refusal - no answer, or a round that this node must not answer
 */
export async function fetchRound(invitation: Invitation, send: Send = sendByFetch, seconds = SECONDS): Promise<Round> {
  const round = readRound(await fetched(send, addressOf(invitation), seconds));
  checkRound(round, invitation);
  await checkSigned(round, await fetched(send, `${addressOf(invitation)}/signed`, seconds), invitation);
  return round;
}

async function fetched(send: Send, url: string, seconds: number): Promise<string> {
  const attempt = await insist(send, url, null, seconds);
  if (attempt.kind === "silence") throw silenceRefusal();
  if (attempt.kind === "refused") throw new Refusal(attempt.error.reason, attempt.error.problem, attempt.error.remedy);
  return attempt.text;
}

/** Refuse a round that is not the one that was foretold, or costs more than the whole budget. */
function checkRound(round: Round, invitation: Invitation): void {
  check(round.id === invitation.round, "The server described another round.");
  check(round.studyDigest === invitation.studyDigest, "The round is of another study file.");
  check(round.question === invitation.question && round.size === invitation.size, "The round asks another question.");
  check(isAtMost(readDecimal(round.epsilon, "epsilon"), budgetOf(invitation)), "The round costs more than the study allows.");
  stratumOf(round, invitation.stratum);
}

/**
 * Answer a round, or repeat the earlier answer.
 *
 * The first call tosses the coin and randomises the value. Every later call repeats that outcome, whatever value it is given.
 *
 * @param invitation - what is asked
 * @param category - place of the value among the categories; null only to repeat an earlier answer
 * @param store - of this node alone
 * @throws Refusal - the round must not be answered, or is not known for want of an answer
 */
export async function answerRound(
  invitation: Invitation,
  category: number | null,
  store: Store,
  means: Means = {},
): Promise<Outcome> {
  const { send = sendByFetch, seconds = SECONDS, onKept = () => undefined } = means;
  check(/^[0-9a-f]{32}$/.test(invitation.token), "The token is not 32 hexadecimal digits.", "Copy it as you were sent it.");
  const key = `answer-${invitation.round}`;
  const again = `again-${invitation.round}`;
  const known = await readDecision(store, key);
  const mine = known ?? (await makeDecision(invitation, category, store, means));
  const decision = known ?? parseDecision(await store.keep(key, JSON.stringify(mine)));
  // Another page of this node may have decided meanwhile: then its answer stands.
  const before = known !== null || JSON.stringify(decision) !== JSON.stringify(mine);
  if (decision.state === "counted" || decision.state === "silent") {
    if (!before) await onKept(null);
    return { state: decision.state, body: null, before, error: null };
  }
  let current: Waiting = decision;
  if (decision.state === "refused") {
    // The report was not counted, so the same one may be sent with another token.
    current = { ...decision, state: "waiting", token: invitation.token };
    await store.put(key, JSON.stringify(current));
  }
  let isTried = before && decision.state === "waiting";
  if (isTried) await store.keep(again, "yes");
  const body = encode(current.token, current.stratum, current.payload);
  await onKept(body);
  const attempt = await insist(send, `${addressOf(invitation)}/reports`, body, seconds, () => {
    isTried = true;
  });
  if (attempt.kind === "silence") return { state: "waiting", body, before, error: null };
  isTried ||= (await store.get(again)) !== null;
  if (attempt.kind === "answer" || (isTried && attempt.error.reason === "TOKEN_SPENT")) {
    await store.put(key, JSON.stringify({ state: "counted" }));
    return { state: "counted", body, before, error: null };
  }
  // After an attempt without an answer, no other refusal proves that the report was not counted.
  if (!isTried) await store.put(key, JSON.stringify({ ...current, state: "refused" }));
  return { state: isTried ? "waiting" : "refused", body, before, error: attempt.error };
}

/** Say how an answer stands, without sending anything; null if there is none. */
export async function stateOf(round: string, store: Store): Promise<Outcome["state"] | null> {
  return (await readDecision(store, `answer-${round}`))?.state ?? null;
}

/** Toss and randomise, after the round and the budget allow it. */
async function makeDecision(invitation: Invitation, category: number | null, store: Store, means: Means): Promise<Decision> {
  const round = means.round ?? (await fetchRound(invitation, means.send, means.seconds));
  checkRound(round, invitation);
  check(category !== null, "There is no answer yet that could be repeated.", "Give the category of the value.");
  if (round.state !== "open") throw new Refusal("ROUND_CLOSED", "The round is closed.", "It takes no more reports.");
  await charge(round, invitation, store);
  const payload = decide(round, invitation.stratum, category, means.bytes ?? systemBytes);
  const mark = hexOf(systemBytes(16));
  return payload === null
    ? { state: "silent" }
    : { state: "waiting", token: invitation.token, stratum: invitation.stratum, payload, mark };
}

/**
 * Record a round in the ledger before its answer is kept: entries ledger-0, ledger-1, ... of which the first writer wins.
 *
 * The node adds up its epsilons itself instead of trusting the server to.
 *
 * @throws Refusal - the round had another description before, or the budget does not allow it
 */
async function charge(round: Round, invitation: Invitation, store: Store): Promise<void> {
  const budget = budgetOf(invitation);
  const share = readDecimal(invitation.share, "The share");
  const own = readDecimal(round.epsilon, "epsilon");
  let spent: Fraction = { numerator: 0n, denominator: 1n };
  let theirs = spent;
  for (let place = 0; ; place += 1) {
    const key = `ledger-${place}`;
    let entry = await store.get(key);
    if (entry === null) {
      for (const [sum, most, what] of [
        [spent, budget, `${invitation.budget} over all rounds`],
        [theirs, share, `${invitation.share} over the rounds of researcher ${round.researcher}`],
      ] as const) {
        if (isAtMost(add(sum, own), most)) continue;
        const problem = `The study allows a node epsilon ${what}, and this one would cost more.`;
        throw new Refusal("BUDGET_EXCEEDED", problem, "Nothing was decided or sent.");
      }
      entry = await store.keep(key, round.text);
    }
    const known = parse(entry) as { round_id: unknown; epsilon: unknown; researcher: unknown };
    if (known.round_id === round.id) {
      if (entry === round.text) return;
      throw new Refusal("CONFLICT", "This was another round when it was answered.", "Ask who sent you here.");
    }
    const cost = readDecimal(known.epsilon, "epsilon");
    spent = add(spent, cost);
    if (known.researcher === round.researcher) theirs = add(theirs, cost);
  }
}

async function readDecision(store: Store, key: string): Promise<Decision | null> {
  const text = await store.get(key);
  return text === null ? null : parseDecision(text);
}

function parseDecision(text: string): Decision {
  try {
    const decision = JSON.parse(text) as Decision;
    if (["counted", "silent", "waiting", "refused"].includes(decision.state)) return decision;
  } catch {
    // It is refused below.
  }
  throw new Refusal("INTEGRITY", "What this node kept of its answer is damaged.", "Answer nothing more in this round.");
}

function budgetOf(invitation: Invitation): Fraction {
  return readDecimal(invitation.budget, "The budget");
}

function addressOf(invitation: Invitation): string {
  check(/^https:\/\/[^/]+$/.test(invitation.server), "The address of the server is not https://HOST:PORT.");
  check(/^[0-9a-f]{32}$/.test(invitation.round), "The id of the round is not 32 hexadecimal digits.");
  return `${invitation.server}/v1/rounds/${invitation.round}`;
}
