// Writes a .gz and a .br beside every file of dist/, and fails if the compressed total exceeds the limit.
import { readdir, readFile, writeFile } from "node:fs/promises";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const LIMIT_BYTES = 150_000;
const dist = new URL("../dist/", import.meta.url);

let total = 0;
for (const entry of await readdir(dist, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || /\.(gz|br)$/.test(entry.name)) continue;
  const file = `${entry.parentPath ?? entry.path}/${entry.name}`;
  const bytes = await readFile(file);
  const gzip = gzipSync(bytes, { level: 9 });
  const brotli = brotliCompressSync(bytes, {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
      [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
    },
  });
  await writeFile(`${file}.gz`, gzip);
  await writeFile(`${file}.br`, brotli);
  total += gzip.length;
}

console.log(`${(total / 1000).toFixed(1)} kB compressed, limit ${LIMIT_BYTES / 1000} kB`);
if (total > LIMIT_BYTES) {
  console.error("error: the pages exceed the size limit; inspect the bundle with `npx vite build --minify false`");
  process.exit(1);
}
