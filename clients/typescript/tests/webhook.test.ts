import assert from 'node:assert/strict';
import { createHmac, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { verifyWebhook, type WebhookEvent, WebhookVerificationError } from '@callboard/client';

const secret = newSecret();
const body = JSON.stringify({
  id: '01a1fa94-5aa9-734c-8dd9-8983a0dd6d24',
  type: 'session.started',
  tenant_id: '01a1fa94-5aa9-734c-8dd9-8983a0dd6d25',
  created_at: '2026-11-20T20:09:49.005Z',
  data: { session_id: 'Zoë', started_at: '2026-11-20T20:09:49.005Z' },
});

function newSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

/** The headers of a delivery of `body`, made `age` seconds ago and signed with each secret, the newest first. */
function delivery(age = 0, secrets = [secret]) {
  const id = '01a1fa94-5aa9-734c-8dd9-8983a0dd6d24';
  const timestamp = String(Math.floor(Date.now() / 1000) - age);
  const sign = (by: string) => {
    const key = Buffer.from(by.slice('whsec_'.length), 'base64');
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
  };
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': secrets.map(sign).join(' ') };
}

function assertRefused(verify: () => WebhookEvent, message: RegExp): void {
  assert.throws(verify, (error) => error instanceof WebhookVerificationError && message.test(error.message));
}

test('a delivery is verified, whatever holds its body and headers, and its type tells its data', () => {
  const headers = delivery();
  const upper = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]));
  for (const bytes of [body, Buffer.from(body), new TextEncoder().encode(body)]) {
    for (const given of [headers, upper, new Headers(headers), { ...headers, 'set-cookie': ['a', 'b'], host: undefined }]) {
      const event = verifyWebhook(bytes, given, secret);
      assert.ok(event.type === 'session.started');
      const session: string = event.data.session_id;
      assert.equal(session, 'Zoë');
      // @ts-expect-error There is no such field, and TypeScript knows it.
      assert.equal(event.data.sesion_id, undefined);
    }
  }
});

test('a body that was changed is refused', () => {
  const headers = delivery();
  assertRefused(() => verifyWebhook(body.replace('Zoë', 'Zoe'), headers, secret), /No matching signature/);
  assertRefused(() => verifyWebhook(`${body}\n`, headers, secret), /No matching signature/);
  assertRefused(() => verifyWebhook(`\uFEFF${body}`, headers, secret), /No matching signature/);
  assertRefused(() => verifyWebhook(Buffer.from(`\uFEFF${body}`), headers, secret), /No matching signature/);
  assertRefused(() => verifyWebhook(body, { ...headers, 'webhook-id': '1' }, secret), /No matching signature/);
});

test('another secret is refused', () => {
  assertRefused(() => verifyWebhook(body, delivery(), newSecret()), /No matching signature/);
});

test('a delivery is good for five minutes either way', () => {
  for (const age of [290, -290]) verifyWebhook(body, delivery(age), secret);
  assertRefused(() => verifyWebhook(body, delivery(310), secret), /too old/);
  assertRefused(() => verifyWebhook(body, delivery(-310), secret), /too new/);
  const older = { ...delivery(), 'webhook-timestamp': String(Math.floor(Date.now() / 1000) - 5) };
  assertRefused(() => verifyWebhook(body, older, secret), /No matching signature/);
  assertRefused(() => verifyWebhook(body, { ...delivery(), 'webhook-timestamp': 'now' }, secret), /Invalid/);
});

test('during a rotation the new secret and the old one verify, and no other', () => {
  const next = newSecret();
  const headers = delivery(0, [next, secret]);
  assert.equal(verifyWebhook(body, headers, next).type, 'session.started');
  assert.equal(verifyWebhook(body, headers, secret).type, 'session.started');
  assertRefused(() => verifyWebhook(body, headers, newSecret()), /No matching signature/);
});

test('a request without its headers is refused', () => {
  for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature']) {
    assertRefused(() => verifyWebhook(body, { ...delivery(), [name]: undefined }, secret), /Missing required headers/);
  }
});

test('what cannot be verified is a mistake of the program', () => {
  assert.throws(() => verifyWebhook(JSON.parse(body), delivery(), secret), /TypeError.*raw body/);
  assert.throws(() => verifyWebhook(body, delivery(), secret.slice(6)), /TypeError.*whsec_/);
  assert.throws(() => verifyWebhook(body, delivery(), ''), /TypeError.*whsec_/);
});
