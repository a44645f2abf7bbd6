import type { ErrorDetail, ErrorResponse as ErrorBody } from './generated/types.gen.js';

/**
 * What the API says is wrong: one of the codes in its documentation, or `unexpected_answer` if a proxy answered instead. A newer server
 * may send codes that are unknown here.
 */
export type ErrorCode = ErrorBody['error']['code'] | 'unexpected_answer' | (string & {});

/** The API refused a request. */
export class CallboardError extends Error {
  override readonly name = 'CallboardError';

  constructor(
    /** The HTTP status. */
    readonly status: number,
    readonly code: ErrorCode,
    message: string,
    /** The field that is wrong, of several the first. */
    readonly param: string | undefined,
    /** Of `validation_failed`: all that is wrong. Otherwise it is empty. */
    readonly details: ErrorDetail[],
    /** By this the operator finds the request in the log. */
    readonly requestId: string | undefined,
    /** How long the API asks to wait before the next attempt. */
    readonly retryAfterSeconds: number | undefined,
  ) {
    super(message);
  }

  static async from(response: Response): Promise<CallboardError> {
    const { status, headers } = response;
    const text = await response.text();
    const error = errorIn(text);
    const message = error?.message ?? `HTTP ${status}, not from Callboard: ${text.slice(0, 200)}`;
    const requestId = error?.request_id ?? headers.get('X-Request-Id') ?? undefined;
    return new CallboardError(
      status,
      error?.code ?? 'unexpected_answer',
      message,
      error?.param,
      error?.details ?? [],
      requestId,
      retryAfterSeconds(headers),
    );
  }
}

/** No answer came: the network failed again and again, or the time was over. */
export class CallboardConnectionError extends Error {
  override readonly name = 'CallboardConnectionError';

  constructor(
    message: string,
    /** `timeoutMs` was over. */
    readonly isTimeout: boolean,
    /** What a POST was sent with. Its outcome is unknown: repeated with this key, it takes effect only once. */
    readonly idempotencyKey: string | undefined,
    cause: unknown,
  ) {
    super(message, { cause });
  }
}

function errorIn(text: string): ErrorBody['error'] | undefined {
  try {
    const error = JSON.parse(text)?.error;
    return typeof error?.code === 'string' && typeof error.message === 'string' ? error : undefined;
  } catch {
    return undefined;
  }
}

/** In seconds from Callboard; a proxy may give a date. */
function retryAfterSeconds(headers: Headers): number | undefined {
  const value = headers.get('Retry-After');
  if (!value) return undefined;
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}
