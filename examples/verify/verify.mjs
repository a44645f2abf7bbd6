// node verify.mjs SECRET TIMESTAMP SIGNATURE [NOW] < body
import { createHmac, timingSafeEqual } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

/**
 * Is this delivery from Callboard, and fresh? `body` is the raw request body, `now` is in Unix seconds.
 * @param {string} secret
 * @param {string} timestamp
 * @param {string} signature
 * @param {Uint8Array} body
 * @param {number} [now]
 * @returns {boolean}
 */
export function verify(secret, timestamp, signature, body, now = Date.now() / 1000) {
  if (!/^[0-9]{1,12}$/.test(timestamp) || Math.abs(now - Number(timestamp)) > 300) return false;
  const digest = createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest('hex');
  const expected = Buffer.from(`sha256=${digest}`);
  const given = Buffer.from(signature);
  return given.length === expected.length && timingSafeEqual(given, expected);
}

if (realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const [secret, timestamp, signature, now] = process.argv.slice(2);
  const good = verify(secret, timestamp, signature, await buffer(process.stdin), now ? Number(now) : undefined);
  console.log(good ? 'verified' : 'refused');
  process.exitCode = good ? 0 : 1;
}
