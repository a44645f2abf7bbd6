/**
 * A short campaign with openapi-fetch over the types that openapi-typescript makes of the same document, which stand beside it as
 * `openapi.ts`: `check` puts both into one folder, and runs
 *
 *     CALLBOARD_URL=http://127.0.0.1:8080 CALLBOARD_API_KEY=vk_test_... node flow-openapi-fetch.js
 */
import assert from 'node:assert/strict';
import createClient from 'openapi-fetch';
import type { components, paths } from './openapi.js';

type Event = components['schemas']['Event'];

const DEADLINE_MS = 120_000;
const { CALLBOARD_URL: baseUrl, CALLBOARD_API_KEY: apiKey } = process.env;
assert.ok(baseUrl && apiKey, 'CALLBOARD_URL and CALLBOARD_API_KEY must be set');
const api = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${apiKey}` } });

/** What an operation gives that must not fail. */
async function ok<Answer extends { data?: unknown; error?: unknown; response: Response }>(
  answer: Promise<Answer>,
): Promise<NonNullable<Answer['data']>> {
  const { data, error, response } = await answer;
  assert.ok(data !== undefined && data !== null, `${response.status} ${response.url}: ${JSON.stringify(error)}`);
  return data;
}

/** The first event that is this one. */
async function until(stream: ReadableStream<Uint8Array>, isIt: (event: Event) => boolean): Promise<Event> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const piece of stream) {
    const blocks = (rest + decoder.decode(piece, { stream: true })).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const line = block.split('\n').find((line) => line.startsWith('data: '));
      const event = line && (JSON.parse(line.slice('data: '.length)) as Event);
      if (event && isIt(event)) return event;
    }
  }
  throw new Error('the stream of events ended before');
}

// A wrong input is refused, with what is wrong about it.
const refused = await api.POST('/v1/agents', { body: { name: '', prompt: 'Be brief.' } });
assert.equal(refused.response.status, 422);
assert.deepEqual([refused.error?.error.code, refused.error?.error.param], ['validation_failed', 'name']);

const agent = await ok(
  api.POST('/v1/agents', { body: { name: 'Ann', prompt: 'Be brief.', silence: { hangup_after_seconds: 77 } } }),
);
assert.equal(agent.silence.hangup_after_seconds, 77);
// Null sets back what it stands for, also inside; what is left out stays.
const params = { path: { id: agent.id } };
const patched = await ok(api.PATCH('/v1/agents/{id}', { params, body: { silence: { hangup_after_seconds: null } } }));
assert.notEqual(patched.silence.hangup_after_seconds, 77);
assert.equal(patched.prompt, 'Be brief.');

const campaign = await ok(
  api.POST('/v1/campaigns', { body: { name: 'Types', agent_id: agent.id, pacing: { calls_per_second: 50 } } }),
);
const ofCampaign = { path: { id: campaign.id } };
// The last digit decides: a talk, busy.
const contacts = ['+15002350000', '+15002350001'].map((phone_number) => ({ phone_number, first_name: 'Zoë' }));
const added = await ok(api.POST('/v1/campaigns/{id}/contacts', { params: ofCampaign, body: { contacts } }));
assert.equal(added.accepted, contacts.length);

const signal = AbortSignal.timeout(DEADLINE_MS);
const stream = await ok(api.GET('/v1/events/stream', { parseAs: 'stream', signal }));
const started = await ok(api.POST('/v1/campaigns/{id}/start', { params: ofCampaign }));
assert.equal(started.status, 'running');
const completed = await until(
  stream,
  (event) => event.type === 'campaign.completed' && event.data.campaign_id === campaign.id,
);
assert.ok(completed.type === 'campaign.completed');
assert.equal(completed.data.total_contacts, contacts.length);

// Page by page, whatever the order.
const statuses: string[] = [];
for (let cursor: string | null | undefined; cursor !== null; ) {
  const query = cursor === undefined ? { limit: 1 } : { limit: 1, cursor };
  const page = await ok(api.GET('/v1/campaigns/{id}/contacts', { params: { ...ofCampaign, query } }));
  statuses.push(...page.data.map((contact) => `${contact.phone_number} ${contact.status}`));
  cursor = page.next_cursor;
}
assert.deepEqual(statuses.sort(), ['+15002350000 completed', '+15002350001 failed']);

const sessions = await ok(api.GET('/v1/sessions', { params: { query: { status: ['completed'], campaign_id: campaign.id } } }));
assert.deepEqual(sessions.data.map((session) => session.to_number), ['+15002350000']);

// An answer without a body, and one that is a text.
const csv = await ok(api.GET('/v1/campaigns/{id}/report.csv', { params: ofCampaign, parseAs: 'text' }));
assert.equal(csv.trim().split('\n').length, 1 + contacts.length);
const deleted = await api.DELETE('/v1/campaigns/{id}', { params: ofCampaign });
assert.equal(deleted.response.status, 204);
const gone = await api.GET('/v1/campaigns/{id}', { params: ofCampaign });
assert.deepEqual([gone.response.status, gone.error?.error.code], [404, 'not_found']);
console.log(`openapi-fetch: ${statuses.length} contacts at their end`);
