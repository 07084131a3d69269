/** A page on which a person answers one question, and sees what is sent and what the noise made of it. */

import { type Invitation, type Outcome, answerRound, fetchRound, stateOf } from "./answer.js";
import { Refusal, check } from "./errors.js";
import { supportOf } from "./randomise.js";
import { type Round, fields, parse, ratioOf, stratumOf } from "./round.js";
import { BrowserStore } from "./store.js";

/** What question.json beside the page says. */
interface Question {
  readonly server: string;
  readonly round: string;
  readonly study_digest: string;
  readonly question: string;
  readonly text: string;
  readonly categories: readonly string[];
  readonly budget_epsilon: string;
  readonly share_epsilon: string;
  readonly study: string;
  readonly authority: string;
}

const KEYS = [
  "server",
  "round",
  "study",
  "authority",
  "study_digest",
  "question",
  "text",
  "categories",
  "budget_epsilon",
  "share_epsilon",
];
const store = new BrowserStore();

function element(id: string): HTMLElement {
  const part = document.getElementById(id);
  if (part === null) throw new TypeError(`the page has no ${id}`);
  return part;
}

function show(id: string, text?: string): void {
  element(id).hidden = false;
  if (text !== undefined) element(id).textContent = text;
}

/** Read the question beside the page, and the token in the link: what follows # in an address is sent to no server. */
async function readQuestion(): Promise<{ question: Question; invitation: Invitation }> {
  const answer = await fetch("question.json", { cache: "no-store" });
  check(answer.ok, "There is no question.json beside this page.", "Tell who sent you the link.");
  const question = fields(parse(await answer.text()), KEYS, "question.json") as unknown as Question;
  check(Array.isArray(question.categories), "question.json has no list of categories.");
  const letter = new URLSearchParams(location.hash.slice(1));
  const token = letter.get("token");
  check(token !== null, "Your link has no token.", "Open the whole link that you were sent.");
  const invitation: Invitation = {
    server: question.server,
    round: question.round,
    token,
    stratum: letter.get("stratum") ?? "everyone",
    studyDigest: question.study_digest,
    question: question.question,
    size: question.categories.length,
    budget: question.budget_epsilon,
    share: question.share_epsilon,
    study: question.study,
    authority: question.authority,
  };
  return { question, invitation };
}

/** Say in words what the noise promises; these numbers are shown and decide nothing. */
function promises(round: Round, stratum: string): string[] {
  const ratio = ratioOf(round.oracle, round.size);
  const times = Number((100n * ratio.numerator) / ratio.denominator + 1n) / 100;
  const { numerator, denominator } = stratumOf(round, stratum).rate;
  const percent = Number((10_000n * numerator) / denominator) / 100;
  return [
    `Another answer of yours would make no message more than ${times} times as likely or as rare (epsilon ${round.epsilon}).`,
    percent === 100
      ? "Everybody who answers sends a message."
      : `A coin decides first: in about ${percent} of 100 cases something is sent, otherwise nothing.`,
    "The noise is drawn once. If the connection breaks, the same message is sent again.",
  ];
}

function explain(question: Question, round: Round | null, body: string | null, chosen: number | null): void {
  const yours = chosen === null ? "" : `You chose “${question.categories[chosen] ?? ""}”. `;
  if (body === null) {
    show("sent");
    show("meaning", `${yours}The coin said that you send nothing, and so nothing is sent.`);
    element("message").hidden = true;
    return;
  }
  const support = round === null ? null : supportOf(round, body);
  const names = support?.map((place) => `“${question.categories[place] ?? ""}”`).join(", ");
  const words = names === undefined ? "" : `The message speaks for ${names === "" ? "no answer" : names}.`;
  show("sent");
  show("meaning", `${yours}${words}`);
  show("message", body);
}

function conclude(outcome: Outcome): void {
  const words = {
    counted: "Your message was counted. Thank you.",
    silent: "You are done: nothing is sent. Thank you.",
    waiting: "Your message is kept on this device, and the server has not confirmed it. Open this page again later.",
    refused: "The server did not take your message.",
  };
  const reason = outcome.error === null ? "" : ` ${outcome.error.problem} ${outcome.error.remedy}`;
  show("state", words[outcome.state] + reason);
}

async function run(): Promise<void> {
  check(isSecureContext, "This page did not come over HTTPS, and so it may have been changed on its way.", "Do not answer.");
  const { question, invitation } = await readQuestion();
  await navigator.storage.persist().catch(() => false);
  show("title", question.text);
  const known = await stateOf(invitation.round, store);
  if (known !== null) {
    show("state", "You have answered before. The same message stands.");
    const round = known === "waiting" || known === "refused" ? await fetchRound(invitation).catch(() => null) : null;
    conclude(await answerRound(invitation, null, store, { onKept: (body) => explain(question, round, body, null) }));
    return;
  }
  const round = await fetchRound(invitation);
  if (round.state !== "open") throw new Refusal("ROUND_CLOSED", "The round is closed.", "It takes no more answers.");
  element("promises").replaceChildren(...promises(round, invitation.stratum).map((text) => textIn("li", text)));
  show("terms");
  show("question", question.text);
  element("categories").replaceChildren(...question.categories.map(choice));
  show("form");
  show("state", "Choose your answer.");
  const form = element("form") as HTMLFormElement;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const chosen = new FormData(form).get("category");
    if (chosen === null) return;
    form.hidden = true;
    show("state", "Your message is kept on this device, and on its way.");
    const place = Number(chosen);
    const onKept = (body: string | null): void => explain(question, round, body, place);
    answerRound(invitation, place, store, { round, onKept }).then(conclude, complain);
  });
}

function textIn(tag: string, text: string): HTMLElement {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}

function choice(category: string, place: number): HTMLElement {
  const label = document.createElement("label");
  const input = document.createElement("input");
  Object.assign(input, { type: "radio", name: "category", value: String(place), required: true });
  label.append(input, ` ${category}`);
  return label;
}

function complain(error: unknown): void {
  show("state", error instanceof Refusal ? error.message : "This page failed. Nothing was sent that is not shown below.");
}

run().catch(complain);
