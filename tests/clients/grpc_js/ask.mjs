// Calls one RPC that the .proto files describe: node ask.mjs PROTOS FILE SERVICE METHOD ENDPOINT CA CERTIFICATE KEY < JSON
import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";

import grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

const [protos, file, service, method, endpoint, ...pems] = process.argv.slice(2);
const described = loadSync(file, { includeDirs: [protos], longs: String, enums: String, bytes: String, defaults: true });
const { v1 } = grpc.loadPackageDefinition(described).veiltab;
const [ca, certificate, key] = pems.map((path) => readFileSync(path));
const client = new v1[service](endpoint, grpc.credentials.createSsl(ca, key, certificate));
client[method](JSON.parse(await text(process.stdin)), { deadline: Date.now() + 15_000 }, (error, answer) => {
  console.log(JSON.stringify(error === null ? { answer } : { refused: grpc.status[error.code] }));
  client.close();
});
