/** A page of a list. */
export interface Page<Item> {
  data: Item[];
  next_cursor?: string | null;
}

type List = (options: any) => Promise<Page<unknown> | undefined>;
type ItemOf<L extends List> = NonNullable<Awaited<ReturnType<L>>>['data'][number];

/**
 * All that is in a list, page by page as you read on:
 *
 *     for await (const agent of each(callboard.listAgents, { query: { name: 'A' } })) { … }
 */
export async function* each<L extends List>(list: L, ...[options]: Parameters<L>): AsyncGenerator<ItemOf<L>, void, undefined> {
  let query = options?.query;
  for (;;) {
    const page = await list({ ...options, query });
    yield* (page?.data ?? []) as ItemOf<L>[];
    if (!page?.next_cursor) return;
    query = { ...query, cursor: page.next_cursor };
  }
}
