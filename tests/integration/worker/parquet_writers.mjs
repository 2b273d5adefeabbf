// Writes the same rows by three of the four writers of worker_parquet.py, in many dialects:
//   node parquet_writers.mjs FOLDER      (FOLDER/rows.json: [{column: value}], FOLDER/plain.parquet)
// and prints the names of the files. PACKAGES names a file beside node_modules.
import { createRequire } from 'node:module';
import { readFileSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.env.PACKAGES);
const folder = process.argv[2];
const rows = JSON.parse(readFileSync(`${folder}/rows.json`, 'utf8'));
const hyp = await import(pathToFileURL(require.resolve('hyparquet-writer')));
const parquetjs = require('parquetjs');
const wasm = await import(pathToFileURL(require.resolve('parquet-wasm/esm/parquet_wasm.js')));
wasm.initSync({ module: readFileSync(require.resolve('parquet-wasm/esm/parquet_wasm_bg.wasm')) });
const made = [];

function save(name, bytes) {
  writeFileSync(`${folder}/${name}.parquet`, Buffer.from(bytes));
  made.push(name);
}

const TYPES = { SAMPLE_ID: 'INT64', URL: 'STRING', TEXT: 'STRING', HEIGHT: 'DOUBLE', WIDTH: 'INT32',
  NSFW: 'STRING', similarity: 'DOUBLE' };

function hyparquet(name, options, encodings = {}) {
  const columnData = Object.entries(TYPES).map(([column, type]) => ({
    name: column, type, encoding: encodings[column],
    data: rows.map((r) => (type === 'INT64' && r[column] !== null ? BigInt(r[column]) : r[column])),
  }));
  save(name, hyp.parquetWriteBuffer({ columnData, rowGroupSize: 700, ...options }));
}
hyparquet('hyp_snappy', {});
hyparquet('hyp_plain', { codec: 'UNCOMPRESSED', pageSize: 4096, statistics: false });
hyparquet('hyp_gzip', { codec: 'GZIP', compressors: { GZIP: (b) => new Uint8Array(gzipSync(b)) } });
hyparquet('hyp_delta', {}, { SAMPLE_ID: 'DELTA_BINARY_PACKED', WIDTH: 'DELTA_BINARY_PACKED',
  URL: 'DELTA_BYTE_ARRAY', TEXT: 'DELTA_LENGTH_BYTE_ARRAY', HEIGHT: 'BYTE_STREAM_SPLIT' });

async function js(name, v2, compression) {
  const kinds = { INT64: 'INT64', STRING: 'UTF8', DOUBLE: 'DOUBLE', INT32: 'INT32' };
  const schema = new parquetjs.ParquetSchema(Object.fromEntries(Object.entries(TYPES).map(
    ([column, type]) => [column, { type: kinds[type], optional: true, compression }])));
  const out = await parquetjs.ParquetWriter.openFile(schema, `${folder}/${name}.parquet`,
    { useDataPageV2: v2 });
  out.setRowGroupSize(900);
  for (const row of rows) {
    await out.appendRow(Object.fromEntries(Object.entries(row).filter(([, v]) => v !== null)));
  }
  await out.close();
  made.push(name);
}
await js('pjs_v1', false, 'UNCOMPRESSED');
await js('pjs_v2', true, 'UNCOMPRESSED');
await js('pjs_v2_snappy', true, 'SNAPPY');
await js('pjs_v2_gzip', true, 'GZIP');

function arrow(name, build) {
  const table = wasm.readParquet(new Uint8Array(readFileSync(`${folder}/plain.parquet`)));
  const options = build(new wasm.WriterPropertiesBuilder()).build();
  save(name, wasm.writeParquet(table, options));
}
const { Compression, Encoding, WriterVersion } = wasm;
arrow('wasm_v1_snappy', (b) => b.setCompression(Compression.SNAPPY).setWriterVersion(WriterVersion.V1));
arrow('wasm_v2_zstd', (b) => b.setCompression(Compression.ZSTD).setWriterVersion(WriterVersion.V2));
arrow('wasm_v2_gzip', (b) => b.setCompression(Compression.GZIP).setWriterVersion(WriterVersion.V2)
  .setDictionaryEnabled(false));
arrow('wasm_v1_small', (b) => b.setCompression(Compression.UNCOMPRESSED).setMaxRowGroupSize(333)
  .setDataPageSizeLimit(2048));
arrow('wasm_v2_delta', (b) => b.setCompression(Compression.ZSTD).setWriterVersion(WriterVersion.V2)
  .setDictionaryEnabled(false).setColumnEncoding('URL', Encoding.DELTA_BYTE_ARRAY)
  .setColumnEncoding('TEXT', Encoding.DELTA_LENGTH_BYTE_ARRAY)
  .setColumnEncoding('SAMPLE_ID', Encoding.DELTA_BINARY_PACKED));
console.log(made.join('\n'));
