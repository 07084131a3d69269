// Many nodes in one process of Node: node js_fleet.mjs CLIENT SERVER CA ROUND.json TOKENS.json FOLDER
// Every message is appended to FOLDER/log before it is sent; a run that is killed is continued by the same command.
import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [client, server, ca, asked, tokens, folder] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(join(client, "dist", `${name}.js`)).href);
const { answerRound } = await load("index");
const { FolderStore, sendTrusting } = await load("folder");

const facts = JSON.parse(readFileSync(asked, "utf8"));
const waiting = JSON.parse(readFileSync(tokens, "utf8")).map((token, number) => ({ token, number }));
const send = sendTrusting(readFileSync(ca, "utf8"));
const states = {};

async function work() {
  for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) {
    const { token, number } = one;
    const outcome = await answerRound(
      { ...facts, server, token },
      number % facts.size,
      new FolderStore(join(folder, `node-${number}`)),
      { send, seconds: 120, onKept: (body) => appendFileSync(join(folder, "log"), `${JSON.stringify({ number, body })}\n`) },
    );
    states[outcome.state] = (states[outcome.state] ?? 0) + 1;
  }
}

await Promise.all(Array.from({ length: 16 }, work));
console.log(JSON.stringify(states));
process.exit(0);
