import { Webhook } from 'standardwebhooks';
import type { Event } from './generated/types.gen.js';

/** What a webhook says. Its `type` tells TypeScript what its `data` is. A newer server may send types that are unknown here. */
export type WebhookEvent = Event;

/** As `node:http` or `fetch` have them. */
export type WebhookHeaders = Headers | Record<string, string | string[] | undefined>;

/** A request is not from Callboard, or too old. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
}

/**
 * The event in a request, if it is sure that Callboard sent it within the last five minutes. Throws a
 * `WebhookVerificationError` otherwise: answer 401.
 *
 * While a secret is rotated, deliveries are signed with both, and either secret verifies.
 *
 * @param rawBody The body as it arrived, before anything has parsed it.
 * @param secret `whsec_…`
 */
export function verifyWebhook(rawBody: string | Uint8Array, headers: WebhookHeaders, secret: string): WebhookEvent {
  if (typeof rawBody !== 'string' && !(rawBody instanceof Uint8Array)) {
    throw new TypeError('verifyWebhook needs the raw body, a string or bytes: what was parsed cannot be verified');
  }
  if (!secret?.startsWith('whsec_')) throw new TypeError("verifyWebhook needs the endpoint's secret, whsec_…");
  const webhook = new Webhook(secret);
  const text = typeof rawBody === 'string' ? rawBody : new TextDecoder('utf-8', { ignoreBOM: true }).decode(rawBody);
  const plain = headers instanceof Headers ? Object.fromEntries(headers) : headers;
  try {
    webhook.verify(text, plain as Record<string, string>, { jsonParse: false });
  } catch (cause) {
    throw new WebhookVerificationError((cause as Error).message, { cause });
  }
  return JSON.parse(text);
}
