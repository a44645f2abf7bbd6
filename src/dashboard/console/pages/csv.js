// Lists as people have them: whatever a spreadsheet or another program has written, read in slices so that the page stays at hand, and
// written as the API takes them.
import { words } from '../words.js';

const text = words.upload;
export const DELIMITERS = [',', ';', '\t'];
export const MOST_COLUMNS = 100;
const MOST_BYTES = 256 * 1024 * 1024;
const MOST_LINES = 2_000_000;
/** Longer is no cell, but a quote that was never closed. */
const LONGEST_CELL = 100_000;
const SLICE = 256 * 1024;
const HEAD = 64 * 1024;
/** Rows that are shown before anything is sent. */
const SHOWN = 10;
/** Characters of a piece: in UTF-8 each has three bytes at most, and the API takes 10 MiB. */
const PIECE = 3_400_000;

const MARKS = { 'utf-8': [0xef, 0xbb, 0xbf], 'utf-16le': [0xff, 0xfe], 'utf-16be': [0xfe, 0xff] };
/** What an Excel workbook, and everything else that is zipped, begins with. */
const ZIP = [0x50, 0x4b, 0x03, 0x04];
const BEGINNING = 0;
const BARE = 1;
const QUOTED = 2;
/** Behind a quote in a quoted cell: the first of two, or the last. */
const BEHIND = 3;
/** Behind the last: only blanks come before the next cell. */
const CLOSED = 4;

async function bytesOf(blob) {
  try {
    return new Uint8Array(await blob.arrayBuffer());
  } catch {
    throw new Error(text.changed);
  }
}

/** The encoding that a file's first bytes tell; what tells none is taken for UTF-8. */
function markOf(bytes) {
  const begins = (mark) => mark.every((byte, n) => bytes[n] === byte);
  if (begins(ZIP)) throw new Error(text.workbook);
  return Object.keys(MARKS).find((name) => begins(MARKS[name])) ?? 'utf-8';
}

async function* decoded(file, encoding) {
  const decoder = new TextDecoder(encoding, { fatal: encoding === 'utf-8' });
  for (let at = 0; at < file.size; at += SLICE) {
    const bytes = await bytesOf(file.slice(at, at + SLICE));
    yield { chars: decoder.decode(bytes, { stream: true }), read: Math.min(at + SLICE, file.size) };
  }
  yield { chars: decoder.decode(), read: file.size };
}

/** Takes a text bit by bit, and gives its rows, each with the line on which it begins. Cells in quotes may hold anything. */
class Rows {
  constructor(delimiter) {
    this.delimiter = delimiter.charCodeAt(0);
    Object.assign(this, { at: BEGINNING, cell: '', cells: [], line: 1, began: 1, opened: 1, wasReturn: false });
  }

  push(chars) {
    const rows = [];
    // Of what belongs to the cell and is not in it yet.
    let from = 0;
    const take = (to) => {
      this.cell += chars.slice(from, to);
      if (this.cell.length > LONGEST_CELL) throw new Error(text.longCell(this.opened));
    };
    for (let n = 0; n < chars.length; n += 1) {
      const code = chars.charCodeAt(n);
      const isFeed = code === 10;
      const isBreak = isFeed || code === 13;
      const isSecond = isFeed && this.wasReturn;
      this.wasReturn = code === 13;
      if (code === 0) throw new Error(text.notText);
      if (isBreak && !isSecond) this.line += 1;
      if (this.at === QUOTED) {
        if (code !== 34) continue;
        take(n);
        this.at = BEHIND;
        continue;
      }
      if (this.at === BEHIND && code === 34) {
        // The second of two stands for itself.
        from = n;
        this.at = QUOTED;
        continue;
      }
      if (isSecond) {
        from = n + 1;
      } else if (code === this.delimiter || isBreak) {
        if (this.at < QUOTED) take(n);
        from = n + 1;
        this.cells.push(this.cell);
        [this.cell, this.at, this.opened] = ['', BEGINNING, this.line];
        if (isBreak) this.close(rows);
      } else if (this.at === BEGINNING && code === 34) {
        [this.at, this.opened, from] = [QUOTED, this.line, n + 1];
      } else if (this.at === BEHIND || this.at === CLOSED) {
        if (code !== 32 && code !== 9) throw new Error(text.afterQuote(this.line));
        this.at = CLOSED;
      } else {
        this.at = BARE;
      }
    }
    if (this.at <= QUOTED) take(chars.length);
    return rows;
  }

  /** An end of line: rows in which nothing is filled in are none. */
  close(rows) {
    if (this.cells.some((cell) => cell.trim())) rows.push({ line: this.began, cells: this.cells });
    [this.cells, this.began] = [[], this.line];
  }

  end() {
    if (this.at === QUOTED) throw new Error(text.openQuote(this.opened));
    const rows = [];
    this.cells.push(this.cell);
    this.close(rows);
    return rows;
  }
}

/** Excel may name the delimiter in a line of its own. */
const isDelimiterLine = ({ line, cells }) => line === 1 && /^sep=.?$/i.test(cells[0]);

function rowsOf(head, isWhole, delimiter) {
  const rows = new Rows(delimiter);
  try {
    return [...rows.push(head), ...(isWhole ? rows.end() : [])].slice(0, SHOWN);
  } catch {
    return [];
  }
}

/** The delimiter with which the first rows have the same number of cells, and the most. */
function delimiterOf(head, isWhole) {
  const named = /^sep=([,;\t])/i.exec(head);
  if (named) return named[1];
  const worth = (delimiter) => {
    const lengths = rowsOf(head, isWhole, delimiter).map(({ cells }) => cells.length);
    if (!(lengths[0] > 1)) return 0;
    return lengths.filter((length) => length === lengths[0]).length / lengths.length + Math.min(lengths[0], MOST_COLUMNS) / 1000;
  };
  return DELIMITERS.reduce((best, delimiter) => (worth(delimiter) > worth(best) ? delimiter : best));
}

/** All rows of a file, some at a time, but for empty ones. */
async function* rows(file, { encoding, delimiter }, onRead) {
  const parser = new Rows(delimiter);
  for await (const { chars, read } of decoded(file, encoding)) {
    yield parser.push(chars).filter((row) => !isDelimiterLine(row));
    onRead(read);
  }
  yield parser.end().filter((row) => !isDelimiterLine(row));
}

/**
 * Looks through a whole file: how it is written, its first rows, how many there are, and which columns are filled in below the first. Throws
 * what is wrong with it, with the line. `wanted`: the delimiter, if the person knows better.
 */
export async function look(file, wanted, onRead) {
  if (file.size > MOST_BYTES) throw new Error(text.tooLarge(MOST_BYTES / 1024 / 1024));
  const start = await bytesOf(file.slice(0, HEAD));
  let encoding = markOf(start);
  const isWhole = file.size <= HEAD;
  for (;;) {
    const head = new TextDecoder(encoding).decode(start);
    const how = { encoding, delimiter: wanted || delimiterOf(head, isWhole) };
    const found = { ...how, first: [], count: 0, filled: [] };
    try {
      for await (const some of rows(file, how, onRead)) {
        // The first row may name the columns.
        for (const { cells } of found.count ? some : some.slice(1)) cells.forEach((cell, n) => { found.filled[n] ||= cell.trim() !== ''; });
        found.first.push(...some.slice(0, SHOWN + 1 - found.first.length));
        found.count += some.length;
        if (some.length && some.at(-1).line > MOST_LINES) throw new Error(text.manyLines(MOST_LINES.toLocaleString()));
      }
      if (!found.count) throw new Error(text.emptyFile);
      const most = found.first[0].cells.length;
      if (most > MOST_COLUMNS) throw new Error(text.manyColumns(most, MOST_COLUMNS));
      return found;
    } catch (error) {
      // What older programs write is no UTF-8, and has no mark.
      if (!(error instanceof TypeError) || encoding !== 'utf-8') throw error;
      encoding = 'windows-1252';
    }
  }
}

const isSpecial = /["\r\n,;\t]/;
const quoted = (cell) => (isSpecial.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);

/** One row in the API's columns. Cells that no column has are kept, without what is in them: the API refuses the row, and says so. */
function written(cells, columns) {
  const own = columns.map((column, n) => (column ? quoted(column.write((cells[n] ?? '').replace(/\r\n?/g, '\n'))) : ''));
  const extra = cells.slice(columns.length);
  const line = [...own, ...(extra.some((cell) => cell.trim()) ? extra.map(() => '') : [])].join(',');
  return line || '""';
}

/**
 * The list as the API takes it, in pieces that it takes. `columns`: `{ name, write }`, or null for what is left out. Each row stands on the
 * line that it has in the person's own file, so that the lines of refused rows are the right ones: an end of line that is not counted ends
 * the first row (CR), and empty lines, which are no rows, stand for what is not sent.
 */
export async function* pieces(file, how, { hasHeader, columns }, onRead) {
  const header = `${columns.map((column) => quoted(column?.name ?? '')).join(',')}\r`;
  const piece = (body) => new Blob([header, body], { type: 'text/csv' });
  let [body, at, isHeader] = ['', 1, hasHeader];
  for await (const some of rows(file, how, onRead)) {
    for (const { line, cells } of some) {
      if (isHeader) {
        isHeader = false;
        continue;
      }
      const row = written(cells, columns);
      if (body && header.length + body.length + (line - at) + row.length > PIECE) {
        yield piece(body);
        [body, at] = ['', 1];
      }
      body += '\n'.repeat(line - at) + row;
      at = line + row.split('\n').length - 1;
    }
  }
  if (body) yield piece(body);
}

/** The refused rows as they are in the person's own file, each with what is wrong with it: to be mended, and uploaded again. */
export async function refusedRows(file, how, hasHeader, rejections) {
  const why = new Map(rejections.map(({ line, message }) => [line, message.replaceAll('`', '')]));
  const parts = ['\ufeff'];
  const add = (cells) => parts.push(`${cells.map((cell) => `"${cell.replaceAll('"', '""')}"`).join(how.delimiter)}\r\n`);
  let isHeader = hasHeader;
  for await (const some of rows(file, how, () => {})) {
    for (const { line, cells } of some) {
      if (isHeader) add([...cells, text.reason]);
      else if (why.has(line)) add([...cells, why.get(line)]);
      isHeader = false;
    }
  }
  return new Blob(parts, { type: 'text/csv' });
}
