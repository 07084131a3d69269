/** From a node to the server and back, over HTTPS, again while no answer comes. */

import { drawSymbols, systemBytes } from "./draws.js";
import { Refusal } from "./errors.js";

/** What came back. */
export interface Reply {
  readonly status: number;
  readonly text: string;
}

/** Sends one request: GET without a body, else POST. It is rejected if no whole answer comes within some seconds. */
export type Send = (url: string, body: string | null, seconds: number) => Promise<Reply>;

/** The server's refusal of a request. */
export interface ServerError {
  readonly reason: string;
  readonly problem: string;
  readonly remedy: string;
}

/** What an attempt led to: an answer of the server, its refusal, or silence. */
export type Attempt =
  | { readonly kind: "answer"; readonly text: string }
  | { readonly kind: "refused"; readonly error: ServerError }
  | { readonly kind: "silence" };

const FIRST_PAUSE = 0.1;
const LONGEST_PAUSE = 5;
const ATTEMPT_SECONDS = 20;

/**
 * Send by fetch, for browsers, and for Node where the server's certificate is of a public authority.
 *
 * The body is a text without a type of its own, which a browser sends to another origin without asking first.
 */
export const sendByFetch: Send = async (url, body, seconds) => {
  const answer = await fetch(url, {
    method: body === null ? "GET" : "POST",
    body,
    cache: "no-store",
    credentials: "omit",
    redirect: "error",
    referrerPolicy: "no-referrer",
    signal: AbortSignal.timeout(1000 * seconds),
  });
  return { status: answer.status, text: await answer.text() };
};

/**
 * Send the same request until there is an answer or a refusal, or the time is over.
 *
 * @param onSilence - told after each attempt that got no answer
 */
export async function insist(
  send: Send,
  url: string,
  body: string | null,
  seconds: number,
  onSilence: () => void = () => undefined,
): Promise<Attempt> {
  const end = Date.now() + 1000 * seconds;
  for (let bound = FIRST_PAUSE; ; bound = Math.min(2 * bound, LONGEST_PAUSE)) {
    const attempt = await once(send, url, body);
    if (attempt.kind !== "silence") return attempt;
    onSilence();
    const [thousandths = 0] = drawSymbols(1000, 1, systemBytes);
    if (Date.now() + thousandths * bound >= end) return attempt;
    await new Promise((wake) => setTimeout(wake, thousandths * bound));
  }
}

/** Make one attempt. What is not the server's own answer, such as a proxy's, proves nothing and counts as silence. */
async function once(send: Send, url: string, body: string | null): Promise<Attempt> {
  let reply: Reply;
  try {
    reply = await send(url, body, ATTEMPT_SECONDS);
  } catch {
    return { kind: "silence" };
  }
  if (reply.status === 200 && (body === null || isCounted(reply.text))) return { kind: "answer", text: reply.text };
  const error = errorOf(reply.text);
  const isFinal = reply.status >= 400 && reply.status < 500 && error !== null;
  return isFinal ? { kind: "refused", error } : { kind: "silence" };
}

function isCounted(text: string): boolean {
  try {
    return (JSON.parse(text) as { counted: unknown }).counted === true;
  } catch {
    return false;
  }
}

function errorOf(text: string): ServerError | null {
  try {
    const { reason, problem, remedy } = (JSON.parse(text) as { error: Record<string, unknown> }).error;
    const areTexts = typeof reason === "string" && typeof problem === "string" && typeof remedy === "string";
    return areTexts ? { reason, problem, remedy } : null;
  } catch {
    return null;
  }
}

/** Return the refusal of a request that was not answered in time. */
export function silenceRefusal(): Refusal {
  return new Refusal("UNAVAILABLE", "The server does not answer.", "Try again later; the same answer will be sent.");
}
