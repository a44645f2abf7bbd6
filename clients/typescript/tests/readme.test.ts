/**
 * What the README shows can be copied: TypeScript takes all of it, and what can be run does what stands there. Its links lead
 * somewhere also where the package is shown alone.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { Webhook } from 'standardwebhooks';
import ts from 'typescript';
import { type Answer, json, refusal, world } from './server.js';

const HERE = join(import.meta.dirname, '../..');
const FOLDER = join(HERE, 'build/readme');
const README = readFileSync(join(HERE, 'README.md'), 'utf8');
const BLOCKS = [...README.matchAll(/```ts\n(.*?)```/gs)].map(([, code = '']) => code);

/** What a block takes from the text around it. */
const GIVEN: Record<string, string> = {
  callboard: "import('@callboard/client').Callboard",
  campaign: '{ id: string }',
  appointment: '{ id: string }',
  body: "import('@callboard/client').SessionCreate",
};

/** The block in which this stands, changed as a reader would change it. */
function block(holds: string, ...changes: [string, string][]): string {
  const [code, ...others] = BLOCKS.filter((code) => code.includes(holds));
  assert.ok(code && others.length === 0, `${holds}: in ${others.length + (code ? 1 : 0)} blocks`);
  return changes.reduce((code, [from, to]) => {
    assert.ok(code.includes(from), from);
    return code.replace(from, to);
  }, code);
}

/** Where the compiled blocks are, by their names. Fails if TypeScript has anything to say. */
function compiled(blocks: Record<string, string>): (name: string) => string {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  const files = Object.entries(blocks).map(([name, code]) => {
    const isMissing = (given: string) => new RegExp(`\\b${given}\\b`).test(code) && !code.includes(`const ${given} =`);
    const missing = Object.entries(GIVEN).filter(([given]) => isMissing(given));
    const given = missing.map(([name, type]) => `declare const ${name}: ${type};\n`).join('');
    const file = join(FOLDER, `${name}.ts`);
    writeFileSync(file, `${given}${code}\nexport {};\n`);
    return file;
  });
  const { config } = ts.readConfigFile(join(HERE, 'tsconfig.json'), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, HERE);
  const program = ts.createProgram(files, { ...options, rootDir: FOLDER, outDir: FOLDER, declaration: false, noUnusedLocals: false });
  const found = [...ts.getPreEmitDiagnostics(program), ...program.emit().diagnostics];
  const [first] = found;
  assert.equal(found.length, 0, first && `${first.file?.fileName}: ${ts.flattenDiagnosticMessageText(first.messageText, '\n')}`);
  return (name) => pathToFileURL(join(FOLDER, `${name}.js`)).href;
}

/** Runs a block whose `callboard` is one for a server that gives these answers; what it says, and what it has asked for. */
async function run(t: TestContext, name: string, code: string, answers: Answer[]) {
  const { callboard, seen } = await world(t, answers);
  const said: unknown[] = [];
  for (const method of ['log', 'error'] as const) t.mock.method(console, method, (...what: unknown[]) => said.push(...what));
  Object.assign(globalThis, { callboard });
  t.after(() => Reflect.deleteProperty(globalThis, 'callboard'));
  await import(compiled({ [name]: code })(name));
  return { said, asked: seen.map(({ method, url }) => `${method} ${url}`) };
}

test('TypeScript takes each block', () => {
  assert.ok(BLOCKS.length > 6, `${BLOCKS.length} blocks`);
  compiled(Object.fromEntries(BLOCKS.map((code, n) => [`block-${n}`, code])));
  assert.throws(() => compiled({ wrong: 'await callboard.createAgnet({});' }), /createAgnet/);
});

test('no link needs the repository', () => {
  const targets = [...README.matchAll(/\]\(([^)]*)\)/g)].map(([, target = '']) => target);
  assert.ok(targets.length > 0);
  assert.deepEqual(targets.filter((target) => !/^(https:\/\/|#)/.test(target)), []);
});

test('the first call', async (t) => {
  const { url, seen } = await world(t, [json(201, { id: '1' }), json(201, { id: '2', status: 'queued' })]);
  const said = t.mock.method(console, 'log', () => {});
  const code = block('new Callboard(', ['http://127.0.0.1:8080', url]);
  await import(compiled({ first: code })('first'));
  assert.deepEqual(said.mock.calls.map((call) => call.arguments), [['queued']]);
  assert.deepEqual(seen.map(({ method, url }) => `${method} ${url}`), ['POST /v1/agents', 'POST /v1/sessions']);
  assert.equal(JSON.parse(String(seen[1]?.body)).agent_id, '1');
});

test('an error is told', async (t) => {
  const { said } = await run(t, 'errors', block('instanceof CallboardError'), [refusal(422, 'validation_failed', { param: 'name' })]);
  assert.deepEqual(said, [422, 'validation_failed', 'name', 'about validation_failed', 'req_1']);
});

test('a list is read to its end', async (t) => {
  const page = (id: string, next: string | null) =>
    json(200, { data: [{ id, end_reason: 'busy' }], has_more: next !== null, next_cursor: next });
  const { said, asked } = await run(t, 'lists', block('each('), [page('1', 'more'), page('2', null)]);
  assert.deepEqual(said, ['1', 'busy', '2', 'busy']);
  assert.equal(asked.length, 2);
  assert.match(asked[0] ?? '', /^GET \/v1\/sessions\?status=failed/);
});

test('the receiver lets in what verifies', async (t) => {
  const [secret, other] = [0, 1].map(() => `whsec_${randomBytes(32).toString('base64')}`) as [string, string];
  process.env.WEBHOOK_SECRET = secret;
  t.after(() => delete process.env.WEBHOOK_SECRET);
  const said = t.mock.method(console, 'log', () => {});
  const code = block('verifyWebhook(', ['createServer(async', 'export const server = createServer(async'], ['listen(9000,', 'listen(0,']);
  const { server } = (await import(compiled({ receiver: code })('receiver'))) as { server: Server };
  t.after(() => server.close());
  if (!server.listening) await once(server, 'listening');
  const body = JSON.stringify({ id: '1', type: 'session.ended', data: { end_reason: 'completed', transcript: [] } });
  const statuses: number[] = [];
  for (const by of [secret, other]) {
    const now = new Date();
    const headers = {
      'webhook-id': '1',
      'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
      'webhook-signature': new Webhook(by).sign('1', now, body),
    };
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    statuses.push((await fetch(url, { method: 'POST', body, headers: { ...headers, connection: 'close' } })).status);
  }
  assert.deepEqual(statuses, [204, 401]);
  assert.deepEqual(said.mock.calls.map((call) => call.arguments), [['completed', []]]);
});
