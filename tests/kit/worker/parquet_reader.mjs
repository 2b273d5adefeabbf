// Reads Parquet files by hyparquet, an implementation of its own:
//   node parquet_reader.mjs FILE...
// and prints a line of JSON for each: {columns, groups: rows of each row group, rows}; bytes are base64.
// PACKAGES names a file beside node_modules.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.env.PACKAGES);
const { parquetMetadata, parquetReadObjects } = await import(pathToFileURL(require.resolve('hyparquet')));
function plain(key, v) {
  if (typeof v === 'bigint') {
    return Number(v);
  }
  return v instanceof Uint8Array ? Buffer.from(v).toString('base64') : v;
}

for (const path of process.argv.slice(2)) {
  const bytes = readFileSync(path);
  const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  const metadata = parquetMetadata(file);
  const columns = [];
  for (let i = 1; i < metadata.schema.length; i++) { // the children of the root, without what is below them
    columns.push(metadata.schema[i].name);
    for (let left = metadata.schema[i].num_children ?? 0; left > 0; left--) {
      i++;
      left += metadata.schema[i].num_children ?? 0;
    }
  }
  const groups = metadata.row_groups.map((g) => Number(g.num_rows));
  const rows = await parquetReadObjects({ file, metadata, utf8: false });
  console.log(JSON.stringify({ columns, groups, rows }, (key, v) => plain(key, v)));
}
