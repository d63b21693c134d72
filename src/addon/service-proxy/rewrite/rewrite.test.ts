import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import {
  brotliCompressSync,
  brotliDecompressSync,
  constants,
  deflateRawSync,
  deflateSync,
  gunzipSync,
  gzipSync,
  inflateSync,
} from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { HtmlRewriter } from './html-rewriter.ts'
import { htmlStreams, wantsPage, withReadableCodings } from './html-stream.ts'
import { rewriteUrl } from './rewrite-url.ts'

const places = { prefix: '/p/x', backend: '10.0.0.1:8080', requestHost: 'api.example:6443' }

test.each([
  ['/a', '/p/x/a'],
  ['/', '/p/x/'],
  ['/a?b=/c#d', '/p/x/a?b=/c#d'],
  ['/p/x/a', '/p/x/a'],
  ['/p/x', '/p/x'],
  ['/p/x?y', '/p/x?y'],
  ['/p/xy', '/p/x/p/xy'],
  ['a/b', 'a/b'],
  ['?q', '?q'],
  ['#f', '#f'],
  ['', ''],
  ['mailto:/x', 'mailto:/x'],
  ['javascript:/x/', 'javascript:/x/'],
  ['http://10.0.0.1:8080/a', '/p/x/a'],
  ['http://10.0.0.1:8080', '/p/x/'],
  ['//10.0.0.1:8080/a', '/p/x/a'],
  ['https://api.example:6443/a', 'https://api.example:6443/p/x/a'],
  ['HTTPS://API.example:6443/a', 'HTTPS://API.example:6443/p/x/a'],
  ['http://elsewhere/a', 'http://elsewhere/a'],
  ['//elsewhere/a', '//elsewhere/a'],
  ['http://10.0.0.1:8080@elsewhere/a', 'http://10.0.0.1:8080@elsewhere/a'],
  ['http://10.0.0.1:80/a', 'http://10.0.0.1:80/a'],
  ['/../../other', '/p/x/other'],
  ['/a/%2e%2e/%2E./b?c', '/p/x/b?c'],
])('the URL %j becomes %j [ADDON-P4]', (url, expected) => {
  expect(rewriteUrl(url, places)).toBe(expected)
})

test.each([
  ['gzip, deflate, br, zstd', 'gzip, deflate, br'],
  ['zstd;q=1.0, GZIP;q=0.5', 'GZIP;q=0.5'],
  ['dcb', 'identity'],
  ['*', 'identity'],
  ['', 'identity'],
  ['gzip;q=0,identity', 'gzip;q=0, identity'],
])('of the codings %j an add-on is asked for %j [ADDON-P4]', (accepted, asked) => {
  const headers = ['Host', 'zstd', 'accept-encoding', accepted]
  expect(withReadableCodings(headers)).toEqual(['Host', 'zstd', 'accept-encoding', asked])
})

test.each([
  ['gzip, deflate, br, zstd', 'gzip, deflate'],
  ['BR;q=1.0, gzip;q=0.5', 'gzip;q=0.5'],
  ['br', 'identity'],
  ['gzip', 'gzip'],
])(
  'codings %s are asked for as %s while there is no room for br [ADDON-X19]',
  (accepted, asked) => {
    const headers = ['Accept-Encoding', accepted]
    expect(withReadableCodings(headers, () => false)).toEqual(['Accept-Encoding', asked])
  },
)

test('room is asked for only where br is accepted [ADDON-X19]', () => {
  let asked = 0
  const hasRoom = (): boolean => {
    asked += 1
    return true
  }
  withReadableCodings(['Accept-Encoding', 'gzip, zstd', 'Host', 'br'], hasRoom)
  expect(asked).toBe(0)
})

test.each([
  ['text/html,application/xhtml+xml,*/*;q=0.8', true],
  ['application/json, Text/HTML', true],
  ['*/*', false],
  ['application/json', false],
])('who accepts %s wants a page: %s', (accepted, expected) => {
  expect(wantsPage(['Host', 'text/html', 'accept', accepted])).toBe(expected)
})

const pages: [string, string][] = [
  ['<a href="/x">', '<a href="/p/x/x">'],
  ["<A class=b HREF='/x' >", "<A class=b HREF='/p/x/x' >"],
  ['<a href=/x>', '<a href=/p/x/x>'],
  ['<a\n  href = "/x"\n>text</a>', '<a\n  href = "/p/x/x"\n>text</a>'],
  [
    '<img src="/i.png"/><form action=/f method=post>',
    '<img src="/p/x/i.png"/><form action=/p/x/f method=post>',
  ],
  [
    '<link href="/s.css" rel=stylesheet><script src="/j.js"></script>',
    '<link href="/p/x/s.css" rel=stylesheet><script src="/p/x/j.js"></script>',
  ],
  ['<a title="a > b" href="/x">', '<a title="a > b" href="/p/x/x">'],
  ['<a data-href="/x" href="x">', '<a data-href="/x" href="x">'],
  ['<div href="/x" title=\'<a href="/y">\'>', '<div href="/x" title=\'<a href="/y">\'>'],
  ['<!-- <a href="/x"> --><a href="/y">', '<!-- <a href="/x"> --><a href="/p/x/y">'],
  [
    '<script>var a = "<a href=\\"/x\\">" < 1</script><a href="/y">',
    '<script>var a = "<a href=\\"/x\\">" < 1</script><a href="/p/x/y">',
  ],
  ['<style>a{background:url(/x)}</style>', '<style>a{background:url(/x)}</style>'],
  ['<textarea><a href="/x"></textarea >', '<textarea><a href="/x"></textarea >'],
  ['1 < 2 <3 <<a href="/x">', '1 < 2 <3 <<a href="/p/x/x">'],
  ['<!doctype html><?pi <a href="/x">', '<!doctype html><?pi <a href="/x">'],
  ['caf\u00e9 <a href="/caf\u00e9">', 'caf\u00e9 <a href="/p/x/caf\u00e9">'],
  ['<a href="/cut off', '<a href="/cut off'],
  [
    '<video poster="/p.png" src="/v"><object data="/o">',
    '<video poster="/p/x/p.png" src="/p/x/v"><object data="/p/x/o">',
  ],
  ['<a disabled href=/x/>', '<a disabled href=/p/x/x/>'],
  ['<a = href="/x"/ ="/y">', '<a = href="/p/x/x"/ ="/y">'],
  ['<a href="  /x  ">', '<a href="  /p/x/x  ">'],
  ['<a href="&#x2F;x&#x2F;y"><a href=&sol;z>', '<a href="/p/x/x&#x2F;y"><a href=/p/x/z>'],
  ['<!--><a href="/x"><!---><a href="/y">', '<!--><a href="/p/x/x"><!---><a href="/p/x/y">'],
  ['<!-a href="/x"><a href="/y">', '<!-a href="/x"><a href="/p/x/y">'],
  [
    '<img srcset="/a.png 1x, b.png 2x,/c,d.png 3x , /e.png">',
    '<img srcset="/p/x/a.png 1x, b.png 2x,/p/x/c,d.png 3x , /p/x/e.png">',
  ],
  [
    '<source srcset=/a.webp><link imagesrcset="/i, /j"><a srcset="/x">',
    '<source srcset=/p/x/a.webp><link imagesrcset="/p/x/i, /p/x/j"><a srcset="/x">',
  ],
  [
    '<img srcset="data:image/png;base64,aa,, /b">',
    '<img srcset="data:image/png;base64,aa,, /p/x/b">',
  ],
]

describe('a page', () => {
  const rewriterOf = () => new HtmlRewriter((url) => rewriteUrl(url, places))

  test.each(pages)('%j is rewritten in one piece [ADDON-P4]', (page, expected) => {
    const rewriter = rewriterOf()
    expect(rewriter.push(page) + rewriter.end()).toBe(expected)
  })

  test.each(pages)('%j is rewritten however it is cut [ADDON-P4]', (page, expected) => {
    for (let size = 1; size < page.length; size++) {
      const rewriter = rewriterOf()
      let out = ''
      for (let at = 0; at < page.length; at += size) out += rewriter.push(page.slice(at, at + size))
      expect(out + rewriter.end()).toBe(expected)
    }
  })

  test('is not kept for a tag without an end', () => {
    const rewriter = rewriterOf()
    rewriter.push('<a ')
    expect(rewriter.push('x'.repeat(70_000))).toHaveLength(70_003)
  })

  // Within the time of a test: where bytes are read again and again, each of these takes far longer.
  test.each([
    ['a long name', `<a ${'x'.repeat(60_000)}>`],
    ['spaces in a URL', `<a href="/x${' '.repeat(60_000)}y">`],
    ['spaces behind a name', `<a ${`b${' '.repeat(100)}`.repeat(600)}>`],
    ['equals signs', `<a ${'b='.repeat(30_000)}>`],
    ['quotes without an end', `<a ${`b="c"d'`.repeat(9_000)}`],
    ['commas in a list', `<img srcset="${'/a,'.repeat(20_000)}${','.repeat(20_000)}x">`],
    ['tags in quotes', `<a b="${'>'.repeat(60_000)}`],
  ])('of %s is read once, byte by byte [ADDON-X1]', (_what, page) => {
    const rewriter = rewriterOf()
    let out = ''
    for (const char of page) out += rewriter.push(char)
    out += rewriter.end()
    expect(out.length).toBeGreaterThanOrEqual(page.length)
  })

  test.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['deflate', deflateRawSync],
    ['br', brotliCompressSync],
  ])('under %s is unpacked no faster than it is read [ADDON-X16]', async (coding, encode) => {
    const [first] = htmlStreams(coding, (url) => url)
    const bomb = encode(Buffer.alloc(32 * 2 ** 20, 32))
    first.write(bomb)
    await once(first, 'readable')
    let read = 0
    for (let turn = 0; turn < 20; turn++) {
      read += (first.read(1) as Buffer | null)?.length ?? 0
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(read).toBe(20)
    expect(first.readableLength).toBeLessThan(2 ** 20)
    first.destroy()
  })

  test('under br may not ask for more memory than pages need [ADDON-X16]', async () => {
    const { BROTLI_PARAM_LGWIN, BROTLI_PARAM_QUALITY } = constants
    const packed = (bits: number): Buffer =>
      brotliCompressSync(randomBytes(2 ** 16), {
        params: { [BROTLI_PARAM_LGWIN]: bits, [BROTLI_PARAM_QUALITY]: 1 },
      })
    for (const bits of [10, 15, 16, 17, 18, 20, 22]) {
      const [first] = htmlStreams('br', (url) => url)
      first.end(packed(bits))
      expect((await buffer(first)).length).toBe(2 ** 16)
    }
    for (const bits of [23, 24]) {
      const [first] = htmlStreams('br', (url) => url)
      first.end(packed(bits))
      await expect(buffer(first)).rejects.toThrow('too large a window')
    }
  })

  const same = (bytes: Buffer): Buffer => bytes
  test.each<[string, (bytes: Buffer) => Buffer, (bytes: Buffer) => Buffer]>([
    ['', same, same],
    ['gzip', gzipSync, gunzipSync],
    ['deflate', deflateSync, inflateSync],
    ['deflate', deflateRawSync, inflateSync],
    ['br', brotliCompressSync, brotliDecompressSync],
  ])('is rewritten under the coding %j [ADDON-P4]', async (coding, encode, decode) => {
    const [first, ...others] = htmlStreams(coding, (url) => rewriteUrl(url, places))
    if (!first) throw new Error('no stream')
    const source = Readable.from([encode(Buffer.from('<a href="/x">\u00fc'))])
    let stream: NodeJS.ReadableStream = source.pipe(first)
    for (const each of others) stream = stream.pipe(each)
    expect(String(decode(await buffer(stream)))).toBe('<a href="/p/x/x">\u00fc')
  })
})
