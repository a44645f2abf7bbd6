/**
 * A campaign from beginning to end, against a real server that may reach this machine's loopback (`serve --dev`):
 *
 *     CALLBOARD_URL=http://127.0.0.1:8080 CALLBOARD_API_KEY=vk_test_... node build/flow.js
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { Callboard, CallboardError, each, verifyWebhook, type WebhookEvent } from '@callboard/client';

const DEADLINE_MS = 120_000;
const { CALLBOARD_URL: baseUrl, CALLBOARD_API_KEY: apiKey, PORT: port = '0' } = process.env;
assert.ok(baseUrl && apiKey, 'CALLBOARD_URL and CALLBOARD_API_KEY must be set');
const callboard = new Callboard({ apiKey, baseUrl });

/** A receiver as its owner would write it, which also tells when something has come. */
class Receiver {
  readonly events = new Map<string, WebhookEvent>();
  readonly refused: unknown[] = [];
  secret = '';
  readonly #server = createServer(async (request, response) => {
    try {
      const event = verifyWebhook(await buffer(request), request.headers, this.secret);
      this.events.set(event.id, event);
      response.writeHead(204).end();
    } catch (error) {
      this.refused.push(error);
      response.writeHead(401).end();
    }
    this.#server.emit('webhook');
  });

  async listen(): Promise<string> {
    this.#server.listen(Number(port), '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hook`;
  }

  /** Once it is true. It is looked at whenever something has come. */
  async until(what: string, isTrue: () => boolean): Promise<void> {
    const signal = AbortSignal.timeout(DEADLINE_MS);
    while (!isTrue()) {
      await once(this.#server, 'webhook', { signal }).catch(() => {
        throw new Error(`${what}: not within ${DEADLINE_MS} ms; so far ${[...this.events.values()].map((event) => event.type)}`);
      });
    }
  }

  all<Type extends WebhookEvent['type']>(type: Type): Extract<WebhookEvent, { type: Type }>[] {
    return [...this.events.values()].filter((event): event is Extract<WebhookEvent, { type: Type }> => event.type === type);
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

const receiver = new Receiver();
const url = await receiver.listen();
try {
  const endpoint = await callboard.createWebhookEndpoint({ body: { url, event_types: ['*'] } });
  assert.ok(endpoint.secret);
  receiver.secret = endpoint.secret;
  const tested = await callboard.testWebhookEndpoint({ path: { id: endpoint.id } });
  assert.ok(tested.delivered, `the test was not delivered: ${tested.error_message}`);

  // A wrong input is refused, with what is wrong about it.
  const refused = await callboard.createAgent({ body: { name: '', prompt: 'Be brief.' } }).catch((error: unknown) => error);
  assert.ok(refused instanceof CallboardError, `an agent without a name: ${refused}`);
  assert.deepEqual([refused.status, refused.code, refused.param], [422, 'validation_failed', 'name']);
  assert.match(String(refused.requestId), /./);

  // The same POST twice has one effect.
  const body = { name: 'Ann', prompt: 'Confirm the appointment.', first_message: 'Hello {{first_name}}, this is Ann.' };
  const headers = { 'Idempotency-Key': crypto.randomUUID() };
  const agent = await callboard.createAgent({ body, headers });
  assert.equal((await callboard.createAgent({ body, headers })).id, agent.id);

  const campaign = await callboard.createCampaign({
    body: { name: 'Flow', agent_id: agent.id, pacing: { calls_per_second: 50 } },
  });
  const path = { id: campaign.id };
  // The last digit decides: a talk, busy, not answered, a voicemail.
  const contacts = ['+15002340000', '+15002340010', '+15002340001', '+15002340002', '+15002340003'].map(
    (phone_number) => ({ phone_number, first_name: 'Zoë' }),
  );
  const added = await callboard.addCampaignContacts({ path, body: { contacts } });
  assert.equal(added.accepted, contacts.length);
  assert.equal((await callboard.startCampaign({ path })).status, 'running');

  await receiver.until('campaign.completed', () => receiver.all('campaign.completed').length > 0);
  const completed = receiver.all('campaign.completed')[0]?.data;
  assert.equal(completed?.campaign_id, campaign.id);
  assert.equal(completed?.total_contacts, contacts.length);

  // Two pages and a bit, whatever the order.
  const statuses: string[] = [];
  for await (const contact of each(callboard.listCampaignContacts, { path, query: { limit: 2 } })) {
    statuses.push(`${contact.phone_number} ${contact.status}`);
  }
  assert.deepEqual(statuses.sort(), [
    '+15002340000 completed',
    '+15002340001 failed',
    '+15002340002 failed',
    '+15002340003 failed',
    '+15002340010 completed',
  ]);

  // Every event has arrived, and every talk has its words.
  const events: string[] = [];
  for await (const event of each(callboard.listEvents, { query: { limit: 10 } })) events.push(event.id);
  await receiver.until(`${events.length} events`, () => events.every((id) => receiver.events.has(id)));
  const talks = receiver.all('session.ended');
  assert.equal(talks.length, 2);
  for (const talk of talks) assert.ok(talk.data.transcript.some((turn) => turn.content?.includes('Hello Zoë')));

  // During a rotation the old secret and the new one verify.
  const rotated = await callboard.rotateWebhookEndpointSecret({ path: { id: endpoint.id } });
  assert.ok(rotated.secret && rotated.secret !== endpoint.secret);
  for (const secret of [endpoint.secret, rotated.secret]) {
    receiver.secret = secret;
    assert.ok((await callboard.testWebhookEndpoint({ path: { id: endpoint.id } })).delivered);
  }
  assert.deepEqual(receiver.refused, []);

  await callboard.deleteWebhookEndpoint({ path: { id: endpoint.id } });
  await assert.rejects(callboard.getWebhookEndpoint({ path: { id: endpoint.id } }), { status: 404, code: 'not_found' });
  console.log(`flow: ${receiver.events.size} webhooks verified, ${statuses.length} contacts at their end`);
} finally {
  receiver.close();
}
