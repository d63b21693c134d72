import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ResponseParser } from './response-parser.ts'

interface Heard {
  status: number
  headers: readonly string[]
  body: string
  ended: number
  kept: boolean
}

/** Feeds pieces and, unless told otherwise, the end of the connection. */
function read(pieces: readonly string[], { isHead = false, closes = false } = {}): Heard | string {
  const heard: Heard = { status: 0, headers: [], body: '', ended: 0, kept: false }
  const parser = new ResponseParser(
    {
      head: ({ status, rawHeaders }) => {
        heard.status = status
        heard.headers = rawHeaders
      },
      body: (chunk) => {
        heard.body += chunk.toString('latin1')
      },
      end: () => {
        heard.ended += 1
      },
    },
    { isHead, isUpgrade: false },
  )
  try {
    for (const piece of pieces) parser.take(Buffer.from(piece, 'latin1'))
    if (closes) parser.close()
  } catch (error) {
    return (error as Error).message
  }
  heard.kept = parser.isDone && parser.keepsConnection
  return heard
}

const ok = 'HTTP/1.1 200 OK\r\n'

describe('a response', () => {
  test.each([
    ['with a length', [`${ok}Content-Length: 3\r\n\r\nabc`], 'abc', true],
    [
      'in chunks',
      [`${ok}Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n`],
      'abc',
      true,
    ],
    [
      'in chunks with a trailer',
      [`${ok}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: y\r\n\r\n`],
      'a',
      true,
    ],
    [
      'in chunks with a long trailer',
      [`${ok}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: ${'y'.repeat(8_000)}\r\n\r\n`],
      'a',
      true,
    ],
    ['without a body', [`${ok}Content-Length: 0\r\n\r\n`], '', true],
    ['204', ['HTTP/1.1 204 No Content\r\n\r\n'], '', true],
    ['304 with a length', ['HTTP/1.1 304 X\r\nContent-Length: 9\r\n\r\n'], '', true],
    [
      'behind early hints',
      [`HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n${ok}Content-Length: 1\r\n\r\na`],
      'a',
      true,
    ],
    [
      'that ends its connection',
      [`${ok}Connection: close\r\nContent-Length: 1\r\n\r\na`],
      'a',
      false,
    ],
    ['of HTTP/1.0', ['HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na'], 'a', false],
    [
      'of HTTP/1.0 that keeps it',
      ['HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na'],
      'a',
      true,
    ],
    ['without a reason', ['HTTP/1.1 200\r\nContent-Length: 1\r\n\r\na'], 'a', true],
  ])('%s is read', (_what, pieces, body, kept) => {
    expect(read(pieces)).toMatchObject({ body, ended: 1, kept })
  })

  test('without a length lasts until the connection ends, which is then not kept', () => {
    expect(read([`${ok}\r\nab`, 'c'])).toMatchObject({ body: 'abc', ended: 0 })
    expect(read([`${ok}\r\nab`, 'c'], { closes: true })).toMatchObject({
      body: 'abc',
      ended: 1,
      kept: false,
    })
  })

  test('to HEAD has no body, whatever it says', () => {
    expect(read([`${ok}Content-Length: 9\r\n\r\n`], { isHead: true })).toMatchObject({
      ended: 1,
      body: '',
    })
  })

  test.each([
    ['not HTTP', ['SSH-2.0-x\r\n\r\n']],
    ['not HTTP, and without an end', ['SSH-2.0-x\r\n']],
    ['of HTTP/2', ['HTTP/2 200\r\n\r\n']],
    ['101', ['HTTP/1.1 101 X\r\n\r\n']],
    ['with an invalid status', ['HTTP/1.1 099 X\r\n\r\n']],
    ['with two lengths', [`${ok}Content-Length: 1\r\nContent-Length: 1\r\n\r\na`]],
    ['with a length and chunks', [`${ok}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\na`]],
    ['with a length that is none', [`${ok}Content-Length: +1\r\n\r\na`]],
    ['with another encoding', [`${ok}Transfer-Encoding: gzip, chunked\r\n\r\n`]],
    ['with a folded header', [`${ok}A: b\r\n c\r\n\r\n`]],
    ['with a space before the colon', [`${ok}Content-Length : 1\r\n\r\na`]],
    ['with a bare line feed', [`${ok}A: b\nC: d\r\n\r\n`]],
    ['with a null byte', [`${ok}A: b\0\r\n\r\n`]],
    ['with a header without a name', [`${ok}: b\r\n\r\n`]],
    ['with something behind it', [`${ok}Content-Length: 1\r\n\r\nabc`]],
    [
      'with a chunk that is longer than it says',
      [`${ok}Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n`],
    ],
    ['with a chunk without a size', [`${ok}Transfer-Encoding: chunked\r\n\r\nx\r\n`]],
    ['with a chunk of a negative size', [`${ok}Transfer-Encoding: chunked\r\n\r\n-1\r\n`]],
    ['with a chunk of an enormous size', [`${ok}Transfer-Encoding: chunked\r\n\r\nfffffffff\r\n`]],
    [
      'with a chunk extension without end',
      [`${ok}Transfer-Encoding: chunked\r\n\r\n1;${'x'.repeat(2000)}`],
    ],
    ['with a head that is too long', [`${ok}A: ${'x'.repeat(70_000)}\r\n\r\n`]],
    [
      'with trailers without end',
      [`${ok}Transfer-Encoding: chunked\r\n\r\n0\r\n${`X: ${'y'.repeat(8_000)}\r\n`.repeat(3)}`],
    ],
    ['with a head without end', [`${ok}A: ${'x'.repeat(70_000)}`]],
  ])('%s is rejected', (_what, pieces) => {
    expect(read(pieces)).toBeTypeOf('string')
  })

  test.each([
    [''],
    [`${ok}A: b`],
    [`${ok}Content-Length: 2\r\n\r\na`],
    [`${ok}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n`],
  ])('that breaks off after %j is incomplete', (text) => {
    expect(read([text], { closes: true })).toBe('the response breaks off')
  })

  test('is the same however it is cut into pieces', () => {
    const sized = `${ok}A: b\r\nContent-Length: 5\r\n\r\nhello`
    const chunked = `${ok}Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;a\r\nlo\r\n0\r\nT: u\r\n\r\n`
    const cuts = fc.array(fc.nat({ max: chunked.length }), { maxLength: 12 })
    fc.assert(
      fc.property(fc.constantFrom(sized, chunked), cuts, (text, places) => {
        const ends = [...new Set([...places.filter((at) => at < text.length), text.length])].sort(
          (a, b) => a - b,
        )
        const pieces = ends.map((end, index) => text.slice(ends[index - 1] ?? 0, end))
        expect(read(pieces)).toMatchObject({ body: 'hello', ended: 1, kept: true })
      }),
    )
  })
})

test('a 101 that was requested ends HTTP, and what is behind it is of another protocol', () => {
  const ignored = { head: () => {}, body: () => {}, end: () => {} }
  const parser = new ResponseParser(ignored, { isHead: false, isUpgrade: true })
  parser.take(Buffer.from('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 101 X\r\nUpgrade: a\r\n\r\nHTTP/'))
  expect(parser.upgraded).toMatchObject({ head: { rawHeaders: ['Upgrade', 'a'] } })
  expect(String(parser.upgraded?.rest)).toBe('HTTP/')
  expect([parser.isDone, parser.mayEnd]).toEqual([false, false])
})
