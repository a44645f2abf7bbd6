import { CallboardError } from './errors.js';
import { type Config, createClient } from './generated/client/index.js';
import { Operations } from './generated/sdk.gen.js';
import { type TransportOptions, transport } from './transport.js';

export interface CallboardOptions extends TransportOptions {
  /** `vk_live_…` or `vk_test_…`. */
  apiKey: string;
  /** Where the server is, such as `https://calls.example.com`. */
  baseUrl: string;
}

/** A Callboard server: a method for each operation of its API, by the name that it has there. */
export class Callboard extends Operations {
  readonly #options: CallboardOptions;

  constructor(options: CallboardOptions) {
    const config: Config & { onSseError(error: unknown): void } = {
      auth: options.apiKey,
      baseUrl: options.baseUrl,
      fetch: transport(options),
      throwOnError: true,
      // A stream would try again for ever: what is refused is refused for good.
      onSseError: (error) => {
        if (error instanceof CallboardError) throw error;
      },
    };
    const client = createClient(config);
    // They are texts, though their type does not begin with `text/`.
    client.interceptors.response.use((response, _request, options) => {
      const isText = /^application\/(x-ndjson|sdp)\b/.test(response.headers.get('Content-Type') ?? '');
      if (isText && options.parseAs === 'auto') options.parseAs = 'text';
      return response;
    });
    super({ client });
    this.#options = options;
    // Methods can be handed on: `each(callboard.listAgents)`.
    const methods = this as unknown as Record<string, unknown>;
    for (const name of Object.getOwnPropertyNames(Operations.prototype)) {
      if (name !== 'constructor') methods[name] = (methods[name] as () => unknown).bind(this);
    }
  }

  /** The same server with other options, for what takes long or must not be repeated. */
  with(options: Partial<CallboardOptions>): Callboard {
    return new Callboard({ ...this.#options, ...options });
  }
}
