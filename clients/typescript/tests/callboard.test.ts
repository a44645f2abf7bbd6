import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CallboardConnectionError, CallboardError } from '@callboard/client';
import { type Answer, breakOff, hangUp, json, refusal, silence, world } from './server.js';

const agent = { body: { name: 'Ann', prompt: 'Be brief.' } };
const busy = refusal(503, 'unavailable', { headers: { 'Retry-After': '2' } });
const created = json(201, { id: '1', name: 'Ann' });

function assertPauses(pauses: number[], least: number[]): void {
  const isRight = pauses.length === least.length && pauses.every((ms, n) => ms >= least[n]! && ms <= least[n]! * 1.25);
  assert.ok(isRight, `waited ${pauses}, not ${least}`);
}

test('a request has the key, the path and the body, and its answer comes parsed', async (t) => {
  const { callboard, seen } = await world(t, [created, json(200, { id: 'a b' })]);
  assert.equal((await callboard.createAgent(agent)).name, 'Ann');
  assert.equal(seen[0]?.method, 'POST');
  assert.equal(seen[0]?.url, '/v1/agents');
  assert.equal(seen[0]?.headers.authorization, 'Bearer vk_test_1');
  assert.deepEqual(JSON.parse(String(seen[0]?.body)), agent.body);
  const { getAgent } = callboard;
  await getAgent({ path: { id: 'a b' } });
  assert.equal(seen[1]?.url, '/v1/agents/a%20b');
  assert.equal(seen[1]?.headers['idempotency-key'], undefined);
});

test('what the API calls text is text, whatever its type is called', async (t) => {
  const texts = ['application/x-ndjson', 'text/csv; charset=utf-8'];
  const answer = (type: string): Answer => (response) => response.writeHead(200, { 'Content-Type': type }).end('{"n":1}\n');
  const { callboard } = await world(t, [...texts, ...texts].map(answer));
  const file = { path: { id: '1', part: '1' } };
  for (const _ of texts) assert.equal(await callboard.downloadComplianceExportFile(file), '{"n":1}\n');
  const stream: unknown = await callboard.downloadComplianceExportFile({ ...file, parseAs: 'stream' });
  assert.ok(stream instanceof ReadableStream);
});

test('a client with other options is another one, and a base URL may end with a slash', async (t) => {
  const { callboard, seen, url } = await world(t, [(response) => response.writeHead(204).end()]);
  await callboard.with({ apiKey: 'vk_test_2', baseUrl: `${url}/` }).deleteAgent({ path: { id: '1' } });
  await callboard.deleteAgent({ path: { id: '2' } });
  assert.deepEqual(seen.map((request) => request.url), ['/v1/agents/1', '/v1/agents/2']);
  assert.deepEqual(seen.map((request) => request.headers.authorization), ['Bearer vk_test_2', 'Bearer vk_test_1']);
});

test('a 503 is repeated with the same idempotency key and body, after what Retry-After asks for', async (t) => {
  const { callboard, seen, pauses } = await world(t, [busy, hangUp, breakOff, created]);
  assert.equal((await callboard.createAgent(agent)).id, '1');
  const keys = seen.map((request) => request.headers['idempotency-key']);
  assert.match(String(keys[0]), /^[0-9a-f-]{36}$/);
  assert.deepEqual(keys, [keys[0], keys[0], keys[0], keys[0]]);
  for (const request of seen) assert.deepEqual(JSON.parse(String(request.body)), agent.body);
  // Retry-After, then 1 s and 2 s; each up to a quarter longer.
  assertPauses(pauses, [2000, 1000, 2000]);

  await callboard.createAgent(agent);
  assert.notEqual(seen[4]?.headers['idempotency-key'], keys[0], 'another request has another key');
});

test('your own idempotency key is kept', async (t) => {
  const { callboard, seen } = await world(t, [busy, created]);
  await callboard.createAgent({ ...agent, headers: { 'Idempotency-Key': 'order-17' } });
  assert.deepEqual(seen.map((request) => request.headers['idempotency-key']), ['order-17', 'order-17']);
});

test('files are sent whole each time', async (t) => {
  const { callboard, seen } = await world(t, [busy, json(202, { id: '1' })]);
  const sample = new File([new Uint8Array(300_000).fill(7)], 'a.wav', { type: 'audio/wav' });
  await callboard.addVoiceSamples({ path: { id: '1' }, body: { samples: [sample] } });
  assert.equal(seen.length, 2);
  for (const request of seen) {
    assert.match(String(request.headers['content-type']), /^multipart\/form-data; boundary=/);
    assert.ok(request.body.includes('filename="a.wav"') && request.body.length > 300_000);
  }
});

test('repeats have an end, and the error says everything', async (t) => {
  const limited = refusal(429, 'rate_limited', { param: 'max_calls_per_minute', headers: { 'Retry-After': '7' } });
  const { callboard, seen, pauses } = await world(t, [limited], { maxRetries: 2 });
  await assert.rejects(callboard.createAgent(agent), (error) => {
    assert.ok(error instanceof CallboardError && error instanceof Error);
    const { status, code, message, param, details, requestId, retryAfterSeconds } = error;
    assert.deepEqual([status, code, message], [429, 'rate_limited', 'about rate_limited']);
    assert.deepEqual([param, details], ['max_calls_per_minute', []]);
    assert.deepEqual([requestId, retryAfterSeconds], ['req_1', 7]);
    return true;
  });
  assert.equal(seen.length, 3);
  assertPauses(pauses, [7000, 7000]);
});

test('who is asked to wait long is told at once', async (t) => {
  const { callboard, seen } = await world(t, [refusal(429, 'rate_limited', { headers: { 'Retry-After': '3600' } })]);
  await assert.rejects(callboard.createAgent(agent), { retryAfterSeconds: 3600 });
  assert.equal(seen.length, 1);
});

test('a proxy may ask to wait until a date, and answer HTML', async (t) => {
  const until = new Date(Date.now() + 30_000).toUTCString();
  const html = (response: import('node:http').ServerResponse) =>
    response.writeHead(502, { 'Content-Type': 'text/html', 'Retry-After': until }).end('<h1>Bad gateway</h1>');
  const { callboard, pauses } = await world(t, [html], { maxRetries: 1 });
  const expected = { status: 502, code: 'unexpected_answer', message: /Bad gateway/, requestId: undefined };
  await assert.rejects(callboard.listAgents(), expected);
  // The date has no fractions of a second, and a pause may be a quarter longer.
  assert.ok(pauses.length === 1 && pauses[0]! >= 28_000 && pauses[0]! <= 37_500, `waited ${pauses}`);
});

test('what is refused for good is not repeated', async (t) => {
  const { callboard, seen } = await world(t, [
    refusal(422, 'validation_failed', { param: 'name' }),
    refusal(409, 'invalid_state'),
    refusal(500, 'internal_error'),
  ]);
  const details = [{ param: 'name', code: 'required', message: 'about validation_failed' }];
  await assert.rejects(callboard.createAgent(agent), { status: 422, code: 'validation_failed', param: 'name', details });
  await assert.rejects(callboard.createAgent(agent), { status: 409, code: 'invalid_state', param: undefined });
  await assert.rejects(callboard.createAgent(agent), { status: 500, code: 'internal_error' });
  assert.equal(seen.length, 3);
});

test('a repeat waits for the attempt that is still running', async (t) => {
  const { callboard, seen } = await world(t, [hangUp, refusal(409, 'idempotency_in_progress'), created]);
  await callboard.createAgent(agent);
  assert.equal(seen.length, 3);
});

test('a network that stays away is an error with the key for a later repeat', async (t) => {
  const { callboard, seen } = await world(t, [hangUp], { maxRetries: 1 });
  await assert.rejects(callboard.createAgent(agent), (error) => {
    assert.ok(error instanceof CallboardConnectionError);
    assert.equal(error.isTimeout, false);
    assert.equal(error.idempotencyKey, seen[0]?.headers['idempotency-key']);
    assert.ok(error.cause instanceof Error);
    return true;
  });
  assert.equal(seen.length, 2);
});

test('time runs out before an answer and in the middle of one, and nothing is repeated', async (t) => {
  const half: typeof silence = (response) =>
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': '9' }).write('{');
  const { callboard, seen } = await world(t, [silence, half], { timeoutMs: 100 });
  // Without the number, for messages are logged.
  const message = /^GET http:\/\/[^/]+\/v1\/sessions: no answer within 100 ms$/;
  const expected = { name: 'CallboardConnectionError', isTimeout: true, message };
  for (let n = 0; n < 2; n++) {
    await assert.rejects(callboard.listSessions({ query: { phone_number: '+15002340000' } }), expected);
  }
  assert.equal(seen.length, 2);
});

test('the caller can give up, also between two attempts', async (t) => {
  const giveUp = new AbortController();
  const why = new Error('enough');
  const { callboard, seen } = await world(t, [
    (response, request) => {
      refusal(503, 'unavailable', { headers: { 'Retry-After': '59' } })(response, request);
      // By then the client waits for its second attempt.
      setTimeout(() => giveUp.abort(why), 300);
    },
  ]);
  const patient = callboard.with({ sleep: undefined });
  await assert.rejects(patient.createAgent({ ...agent, signal: giveUp.signal }), why);
  assert.equal(seen.length, 1);
  await assert.rejects(callboard.listAgents({ signal: giveUp.signal }), why);
  assert.equal(seen.length, 1);
});

test('what is not JSON is not held back', async (t) => {
  const { callboard } = await world(t, [
    (response) => response.writeHead(200, { 'Content-Type': 'audio/wav' }).end('RIFF'),
    (response) => response.writeHead(200, { 'Content-Type': 'text/csv' }).end('a,b\n'),
  ]);
  const sound = await callboard.downloadRecording({ path: { id: '1' } });
  assert.equal(await (sound as Blob).text(), 'RIFF');
  assert.equal(await callboard.exportAnswers(), 'a,b\n');
});

test('an event stream lasts longer than any timeout, and goes on where it was cut off', async (t) => {
  const { callboard, seen } = await world(
    t,
    [
      (response) => {
        response.writeHead(200, { 'Content-Type': 'text/event-stream' });
        response.write(': connected\n\nid: 1\nevent: webhook.test\ndata: {"id":"1"}\n\n');
        setTimeout(() => response.write('id: 2\ndata: {"id":"2"}\n\n', () => response.destroy()), 300);
      },
      hangUp,
      (response) => response.writeHead(200, { 'Content-Type': 'text/event-stream' }).end('id: 3\ndata: {"id":"3"}\n\n'),
    ],
    { timeoutMs: 200 },
  );
  const { stream } = await callboard.streamEvents({ sseDefaultRetryDelay: 1 });
  const read: unknown[] = [];
  for await (const event of stream) read.push(event);
  assert.deepEqual(read, [{ id: '1' }, { id: '2' }, { id: '3' }]);
  assert.deepEqual(seen.map((request) => request.headers['last-event-id']), [undefined, '2', '2']);
});

test('an event stream that is refused is an error', async (t) => {
  const { callboard, seen } = await world(t, [refusal(401, 'unauthenticated')]);
  const { stream } = await callboard.streamSession({ path: { id: '1' } });
  await assert.rejects(stream.next(), { name: 'CallboardError', code: 'unauthenticated' });
  assert.equal(seen.length, 1);
});
