// Makes src/api/schema.d.ts from openapi.json (which `rollcall openapi` prints). With --check it writes nothing and fails
// if the file is not what it would write.
import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const source = new URL("../openapi.json", import.meta.url);
const target = new URL("../src/api/schema.d.ts", import.meta.url);
const head = "// Made from openapi.json by `npm run api`. Do not edit.\n\n";

const description = JSON.parse(await readFile(source, "utf8"));
// We call operations by path and method. Their ids are only in the way, and several are called `list`.
for (const path of Object.values(description.paths)) {
  for (const operation of Object.values(path)) delete operation.operationId;
}

const wanted = head + astToString(await openapiTS(description));
if (process.argv.includes("--check")) {
  const present = await readFile(target, "utf8").catch(() => "");
  if (present !== wanted) {
    console.error("error: src/api/schema.d.ts is not what openapi.json says: run `npm run api` in web/ and commit it");
    process.exit(1);
  }
} else {
  await writeFile(target, wanted);
}
