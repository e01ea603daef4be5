// Generates src/api/schema.d.ts from openapi.json (`rollcall openapi` prints it). Writes only if the content changes.
import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const source = new URL("../openapi.json", import.meta.url);
const target = new URL("../src/api/schema.d.ts", import.meta.url);

const description = JSON.parse(await readFile(source, "utf8"));
// Operations are called by path and method. Their ids would only add a second, longer name.
for (const path of Object.values(description.paths)) {
  for (const operation of Object.values(path)) delete operation.operationId;
}

const generated = "// Generated from openapi.json by `npm run api`.\n\n" + astToString(await openapiTS(description));
const present = await readFile(target, "utf8").catch(() => "");
if (present !== generated) await writeFile(target, generated);
