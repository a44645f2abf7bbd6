export { Callboard, type CallboardOptions } from './callboard.js';
export { each, type Page } from './each.js';
export { CallboardConnectionError, CallboardError, type ErrorCode } from './errors.js';
export { type WebhookEvent, type WebhookHeaders, WebhookVerificationError, verifyWebhook } from './webhook.js';
export type * from './generated/types.gen.js';
