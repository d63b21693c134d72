import { describe, expect, test } from 'vitest'
import {
  endToEndHeaders,
  foldHeaderName,
  rawHeaderValues,
  refuseAmbiguousHeaders,
  withoutHeaders,
} from './headers.ts'

test('every value of a header is found, in order, whatever its case', () => {
  const raw = ['A', '1', 'x-user', 'bob', 'X-USER', 'root', 'b', 'x-user']
  expect(rawHeaderValues(raw, 'X-User')).toEqual(['bob', 'root'])
  expect(rawHeaderValues(raw, 'x-users')).toEqual([])
})

test.each(['X_Remote_User', 'x.remote.user', 'X-REMOTE-USER', 'x-remote_user', 'X!Remote~User'])(
  '%s folds to the header that a careless reader takes it for',
  (name) => {
    expect(foldHeaderName(name)).toBe('x-remote-user')
  },
)

test('headers are left out by what their names fold to', () => {
  const raw = ['X_Remote.User', 'root', 'Accept', 'a', '__proto__', 'x', 'x-remote-user', 'root']
  expect(withoutHeaders(raw, (name) => foldHeaderName(name) === 'x-remote-user')).toEqual([
    'Accept',
    'a',
    '__proto__',
    'x',
  ])
})

describe('a request that could be read in two ways is refused', () => {
  const request = (rawHeaders: string[]) => {
    const isHttp2 = rawHeaders.includes(':method')
    const headers: Record<string, string> = isHttp2 ? {} : { host: 'a' }
    for (let i = 0; i < rawHeaders.length; i += 2) {
      headers[rawHeaders[i]!.toLowerCase()] ??= rawHeaders[i + 1]!
    }
    return { rawHeaders, headers, httpVersion: isHttp2 ? '2.0' : '1.1' }
  }

  test.each([
    ['two credentials', ['Authorization', 'Bearer a', 'authorization', 'Bearer b']],
    ['the same credential twice', ['Authorization', 'Bearer a', 'Authorization', 'Bearer a']],
    ['two hosts', ['Host', 'a', 'HOST', 'b']],
    ['two lengths', ['Content-Length', '1', 'Content-Length', '1']],
    ['two content types', ['Content-Type', 'a/b', 'Content-Type', 'c/d']],
    ['two content encodings', ['Content-Encoding', 'gzip', 'Content-Encoding', 'gzip']],
    ['chunked twice', ['Transfer-Encoding', 'chunked', 'Transfer-Encoding', 'chunked']],
    ['an odd transfer encoding', ['Transfer-Encoding', 'xchunked']],
    ['a list of transfer encodings', ['Transfer-Encoding', 'gzip, chunked']],
    ['an odd spelling of Transfer-Encoding', ['Transfer_Encoding', 'chunked']],
    ['an odd spelling of Content-Length', ['content.length', '5']],
    ['another host than the authority', [':method', 'GET', ':authority', 'a', 'host', 'b']],
  ])('%s', (_name, rawHeaders) => {
    expect(() => refuseAmbiguousHeaders(request(rawHeaders))).toThrow(
      expect.objectContaining({ reason: 'BadRequest' }),
    )
  })

  test.each([
    ['nothing', []],
    [
      'one of each',
      ['Host', 'a', 'Authorization', 'b', 'Content-Type', 'c', 'Content-Length', '1'],
    ],
    ['chunked', ['Transfer-Encoding', 'Chunked']],
    [
      'several Accept and Impersonate-Group headers',
      ['Accept', 'a', 'Accept', 'b', 'Impersonate-Group', 'c', 'Impersonate-Group', 'd'],
    ],
    ['the authority again as host', [':method', 'GET', ':authority', 'a', 'host', 'a']],
    ['a dot in another name', ['x.y_z', '1', 'x.y_z', '2']],
  ])('but not %s', (_name, rawHeaders) => {
    expect(() => refuseAmbiguousHeaders(request(rawHeaders))).not.toThrow()
  })

  test('and so is HTTP/1.1 without a host [SEC-R2001]', () => {
    const bare = { rawHeaders: [], headers: {}, httpVersion: '1.1' }
    expect(() => refuseAmbiguousHeaders(bare)).toThrow(
      expect.objectContaining({ reason: 'BadRequest' }),
    )
    expect(() => refuseAmbiguousHeaders({ ...bare, httpVersion: '1.0' })).not.toThrow()
  })

  test('and the credential is not in the message', () => {
    const raw = ['Authorization', 'Bearer secret', 'Authorization', 'Bearer secret']
    expect(() => refuseAmbiguousHeaders(request(raw))).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('secret') }),
    )
  })
})

describe('headers for the next hop', () => {
  test.each([
    [
      'are without those of this connection',
      [
        'TE',
        'x',
        'Keep-Alive',
        '1',
        'Proxy-Authorization',
        's',
        'Upgrade',
        'h2c',
        'Accept',
        'a',
        'Trailer',
        'b',
        'Transfer-Encoding',
        'chunked',
      ],
      ['Accept', 'a'],
    ],
    [
      'are without those that Connection names, in all its values',
      ['Connection', '', 'connection', 'close, X-Foo', 'x-foo', '1', 'X-FOO', '2', 'X-Bar', '3'],
      ['X-Bar', '3'],
    ],
    [
      'keep what decides on the target and the end of the body',
      ['Connection', 'Host, Content-Length', 'Host', 'a', 'Content-Length', '3'],
      ['Host', 'a', 'Content-Length', '3'],
    ],
    [
      'are without pseudo-headers',
      [':method', 'GET', ':path', '/', 'accept', 'a'],
      ['accept', 'a'],
    ],
    [
      'keep doubles and their order',
      ['a', '1', 'b', '2', 'a', '3'],
      ['a', '1', 'b', '2', 'a', '3'],
    ],
  ])('%s', (_name, raw, expected) => {
    expect(endToEndHeaders(raw)).toEqual(expected)
  })
})
