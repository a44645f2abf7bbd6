import assert from 'node:assert/strict';
import { test } from 'node:test';
import { each } from '@callboard/client';
import { json, refusal, world } from './server.js';

const page = (ids: string[], next_cursor: string | null) =>
  json(200, { data: ids.map((id) => ({ id })), has_more: next_cursor !== null, next_cursor });

test('a list is read page by page, with the same query', async (t) => {
  const { callboard, seen } = await world(t, [page(['1', '2'], 'c1'), page([], 'c2'), page(['3'], null)]);
  const ids: string[] = [];
  const options = { path: { id: 'k' }, query: { limit: 2, status: 'failed' } } as const;
  for await (const contact of each(callboard.listCampaignContacts, options)) ids.push(contact.id);
  assert.deepEqual(ids, ['1', '2', '3']);
  const path = '/v1/campaigns/k/contacts?limit=2&status=failed';
  assert.deepEqual(seen.map((request) => request.url), [path, `${path}&cursor=c1`, `${path}&cursor=c2`]);
});

test('who stops reading asks for no more pages', async (t) => {
  const { callboard, seen } = await world(t, [page(['1', '2'], 'c1')]);
  for await (const agent of each(callboard.listAgents)) {
    assert.equal(agent.id, '1');
    break;
  }
  assert.equal(seen.length, 1);
});

test('an error in the middle is thrown', async (t) => {
  const { callboard } = await world(t, [page(['1'], 'c1'), refusal(403, 'forbidden')]);
  const read: string[] = [];
  await assert.rejects(
    async () => {
      for await (const agent of each(callboard.listAgents)) read.push(agent.id);
    },
    { code: 'forbidden' },
  );
  assert.deepEqual(read, ['1']);
});
