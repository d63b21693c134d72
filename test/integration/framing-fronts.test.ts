import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  exchange,
  type Front,
  frontNames,
  openFront,
  statusOf,
} from '../support/forwarding-fronts.ts'

type Bytes = (front: Front) => string
const request =
  (first: string, lines: readonly string[], body = ''): Bytes =>
  (front) =>
    `${[first.replace('PATH', front.path), ...front.lines, 'Content-Type: text/plain', ...lines].join('\r\n')}\r\n\r\n${body}`
const post = (lines: readonly string[], body = ''): Bytes =>
  request('POST PATH HTTP/1.1', lines, body)
const chunked = 'Transfer-Encoding: chunked'
const hello = '5\r\nhello\r\n0\r\n\r\n'

/** Requests that two readers could take in two ways. */
const ambiguous: Readonly<Record<string, Bytes>> = {
  'a length with a leading zero': post(['Content-Length: 05'], 'hello'),
  'a length of zeros': post(['Content-Length: 00']),
  'a length with a sign': post(['Content-Length: +5'], 'hello'),
  'a negative length': post(['Content-Length: -5'], 'hello'),
  'a length in hex': post(['Content-Length: 0x5'], 'hello'),
  'a length with a fraction': post(['Content-Length: 5.0'], 'hello'),
  'a length with an exponent': post(['Content-Length: 5e0'], 'hello'),
  'a length with a space in it': post(['Content-Length: 5 0'], 'hello'),
  'an empty length': post(['Content-Length:']),
  'a list of lengths': post(['Content-Length: 5, 5'], 'hello'),
  'a length beyond all numbers': post(['Content-Length: 99999999999999999999']),
  'two lengths': post(['Content-Length: 5', 'Content-Length: 5'], 'hello'),
  'two lengths that differ': post(['Content-Length: 5', 'Content-Length: 0'], 'hello'),
  'two lengths in two cases': post(['Content-Length: 5', 'content-length: 0'], 'hello'),
  'a length with an underscore': post(['Content_Length: 5'], 'hello'),
  'a length and chunks': post(['Content-Length: 5', chunked], hello),
  'chunks and a length': post([chunked, 'Content-Length: 5'], hello),
  'chunks twice': post([chunked, chunked], hello),
  'chunks in a list': post(['Transfer-Encoding: chunked, chunked'], hello),
  'identity, then chunks': post(['Transfer-Encoding: identity, chunked'], hello),
  'gzip, then chunks': post(['Transfer-Encoding: gzip, chunked'], hello),
  'chunks, then identity': post(['Transfer-Encoding: chunked, identity'], hello),
  'identity alone': post(['Transfer-Encoding: identity']),
  'an empty encoding': post(['Transfer-Encoding:']),
  'an unknown encoding': post(['Transfer-Encoding: xchunked'], hello),
  'a quoted encoding': post(['Transfer-Encoding: "chunked"'], hello),
  'an encoding with a parameter': post(['Transfer-Encoding: chunked;q=1'], hello),
  'an encoding with an underscore': post(['Transfer_Encoding: chunked', 'Content-Length: 0']),
  'an encoding with a dot': post(['Transfer.Encoding: chunked', 'Content-Length: 0']),
  'a space before the colon': post(['Transfer-Encoding : chunked'], hello),
  'a folded encoding': post(['Transfer-Encoding:\r\n chunked'], hello),
  'a vertical tab in the encoding': post(['Transfer-Encoding: \x0bchunked'], hello),
  'chunks on HTTP/1.0': request('POST PATH HTTP/1.0', [chunked], hello),
  'chunks on HTTP/1.0 that stays open': request(
    'POST PATH HTTP/1.0',
    [chunked, 'Connection: keep-alive'],
    hello,
  ),
  'a request of HTTP/0.9': request('GET PATH HTTP/0.9', []),
  'a request of HTTP/2.0': request('GET PATH HTTP/2.0', []),
  'a request of HTTP/1.2': request('GET PATH HTTP/1.2', []),
  'a request without a host': (front) =>
    `GET ${front.path} HTTP/1.1\r\n${front.lines.filter((line) => !/^host:/i.test(line)).join('\r\n')}\r\n\r\n`,
  'a bare line feed in the head': (front) =>
    `GET ${front.path} HTTP/1.1\r\n${front.lines.join('\r\n')}\nX-A: b\r\n\r\n`,
}

/** Bodies that are broken behind a head that is fine. */
const brokenBodies: Readonly<Record<string, Bytes>> = {
  'a chunk size with a sign': post([chunked], '+5\r\nhello\r\n0\r\n\r\n'),
  'a chunk size in hex notation': post([chunked], '0x5\r\nhello\r\n0\r\n\r\n'),
  'a chunk size with a space': post([chunked], '5 \r\nhello\r\n0\r\n\r\n'),
  'a chunk size that overflows': post([chunked], 'fffffffffffffffff\r\nhello\r\n0\r\n\r\n'),
  'a chunk that ends in a line feed': post([chunked], '5\r\nhello\n0\r\n\r\n'),
  'a chunk size that ends in a line feed': post([chunked], '5\nhello\r\n0\r\n\r\n'),
  'a chunk that is longer than its size': post([chunked], '5\r\nhello world\r\n0\r\n\r\n'),
  'an extension without an end': post([chunked], `5;${'x'.repeat(20_000)}\r\nhello\r\n0\r\n\r\n`),
  '4,000 chunks with extensions of 2 KB': post(
    [chunked],
    `${`1;a=${'x'.repeat(2_000)}\r\nh\r\n`.repeat(4_000)}0\r\n\r\n`,
  ),
  '4,000 chunks of 1 KB with extensions of 2 KB': post(
    [chunked],
    `${`400;a=${'x'.repeat(2_000)}\r\n${'d'.repeat(1_024)}\r\n`.repeat(4_000)}0\r\n\r\n`,
  ),
}

/** Requests that are unusual and mean one thing only, with their body. */
const plain: Readonly<Record<string, readonly [Bytes, body: string]>> = {
  'a length': [post(['Content-Length: 5', 'Connection: close'], 'hello'), 'hello'],
  'a length of zero': [post(['Content-Length: 0', 'Connection: close']), ''],
  chunks: [post([chunked, 'Connection: close'], hello), 'hello'],
  'chunks in capitals': [post(['Transfer-Encoding: CHUNKED', 'Connection: close'], hello), 'hello'],
  'a chunk with a short extension': [
    post([chunked, 'Connection: close'], '5;a=b\r\nhello\r\n0\r\n\r\n'),
    'hello',
  ],
  'four thousand chunks of one byte': [
    post([chunked, 'Connection: close'], `${'1\r\nh\r\n'.repeat(4_000)}0\r\n\r\n`),
    'h'.repeat(4_000),
  ],
  'a large body in chunks': [
    post(
      [chunked, 'Connection: close'],
      `${`4000\r\n${'d'.repeat(16_384)}\r\n`.repeat(64)}0\r\n\r\n`,
    ),
    'd'.repeat(16_384 * 64),
  ],
  'a GET with a body': [
    request('GET PATH HTTP/1.1', ['Content-Length: 5', 'Connection: close'], 'hello'),
    'hello',
  ],
  'no length at all': [post(['Connection: close']), ''],
  'HTTP/1.0 with a length': [
    request('POST PATH HTTP/1.0', ['Content-Length: 5'], 'hello'),
    'hello',
  ],
}

const smuggled = (front: Front): string =>
  `GET ${front.path}/smuggled HTTP/1.1\r\n${front.lines.join('\r\n')}\r\n\r\n`

describe.each(frontNames)('the %s', (name) => {
  let front: Front
  beforeAll(async () => {
    front = await openFront(name)
  })
  afterAll(() => front.close())

  test.each(Object.entries(ambiguous))(
    'refuses %s, and reads nothing behind it [SEC-R2001]',
    async (_what, bytes) => {
      const [before, connections] = [front.seen.length, front.connections()]
      // The answer, and then the end of the connection.
      const text = await exchange(front, bytes(front) + smuggled(front), () => false)
      expect(statusOf(text)).toBe(400)
      expect(text.match(/HTTP\/1\.1 \d{3} /g)).toHaveLength(1)
      expect([front.seen.length, front.connections()]).toEqual([before, connections])
    },
  )

  test.each(Object.entries(brokenBodies))(
    'does not pass on %s as a whole request [SEC-R2001] [SEC-R2002]',
    async (_what, bytes) => {
      const before = front.seen.length
      const text = await exchange(front, bytes(front) + smuggled(front), () => false)
      expect(text).not.toContain('HTTP/1.1 200')
      // What is behind it has seen no end of such a body.
      const whole = front.seen.slice(before).filter(({ body }) => body !== '')
      expect(whole).toEqual([])
      expect(front.seen.some(({ url }) => url.includes('smuggled'))).toBe(false)
    },
  )

  test.each(Object.entries(plain))(
    'passes on %s as one request [SEC-R2001]',
    async (_what, [bytes, body]) => {
      const before = front.seen.length
      // A path of its own: a body that an earlier test has broken off may be noticed late.
      const named = { ...front, path: `${front.path}/plain` }
      const text = await exchange(front, bytes(named), () => false)
      expect(statusOf(text)).toBe(200)
      const seen = front.seen.slice(before).filter(({ url }) => url.endsWith('/plain'))
      expect(seen.map((each) => each.body)).toEqual([body])
    },
  )

  test.each([150, 1_000, 1_001, 2_500])(
    'loses none of %d header lines silently, and reads nothing behind a refusal [SEC-R2003]',
    async (count) => {
      const [before, connections] = [front.seen.length, front.connections()]
      const many = Array.from({ length: count }, (_, index) => `h${index}: 1`)
      // The API server's limit is 1,000: users who are impersonated may be in many groups.
      const isPassed = front.name === 'service proxy' && count < 900
      const lines = [...many, 'X-Last: kept', ...(isPassed ? ['Connection: close'] : [])]
      const bytes = request('GET PATH HTTP/1.1', lines)(front)
      const text = await exchange(front, bytes + (isPassed ? '' : smuggled(front)), () => false)
      expect(statusOf(text)).toBe(isPassed ? 200 : 431)
      expect(text.match(/HTTP\/1\.1 \d{3} /g)).toHaveLength(1)
      const seen = front.seen.slice(before)
      expect(seen.map(({ rawHeaders }) => rawHeaders.includes('kept'))).toEqual(
        isPassed ? [true] : [],
      )
      expect(front.connections() - connections <= (isPassed ? 1 : 0)).toBe(true)
    },
  )
})
