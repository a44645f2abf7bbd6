import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { Callboard, type CallboardOptions } from '@callboard/client';

export interface Seen {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

export type Answer = (response: ServerResponse, request: Seen) => unknown;

export interface World {
  callboard: Callboard;
  url: string;
  /** Requests in their order. */
  seen: Seen[];
  /** How long the client wanted to wait before its second, third, ... attempt. It does not really wait. */
  pauses: number[];
}

/** A server that gives these answers one after the other, the last one for ever, and a client for it. */
export async function world(test: TestContext, answers: Answer[], options: Partial<CallboardOptions> = {}): Promise<World> {
  const seen: Seen[] = [];
  const pauses: number[] = [];
  const server = createServer(async (request: IncomingMessage, response) => {
    const { method = '', url = '', headers } = request;
    const arrived = { method, url, headers, body: await buffer(request) };
    seen.push(arrived);
    answers[Math.min(seen.length, answers.length) - 1]?.(response, arrived);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  test.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const sleep = async (ms: number) => void pauses.push(ms);
  return { callboard: new Callboard({ apiKey: 'vk_test_1', baseUrl: url, sleep, ...options }), url, seen, pauses };
}

export function json(status: number, body: unknown, headers: Record<string, string> = {}): Answer {
  return (response) =>
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify(body));
}

/** An error as the API words it. */
export function refusal(status: number, code: string, more: { param?: string; headers?: Record<string, string> } = {}): Answer {
  const { param, headers } = more;
  const message = `about ${code}`;
  const details = status === 422 ? { details: [{ param, code: 'required', message }] } : {};
  const error = { code, message, ...(param && { param }), ...details, request_id: 'req_1' };
  return json(status, { error }, headers);
}

/** The connection is gone before an answer. */
export const hangUp: Answer = (response) => response.destroy();

/** The connection is gone in the middle of an answer. */
export const breakOff: Answer = (response) => {
  response.writeHead(201, { 'Content-Type': 'application/json', 'Content-Length': '100' });
  response.write('{"id":"1', () => response.destroy());
};

/** Nothing ever comes. */
export const silence: Answer = () => {};
