import { expect, test } from 'vitest'
import { requestHead } from './connection.ts'
import { RequestInvalid } from './upstream.ts'

const headOf = (method: string, path: string, headers: string[], upgrade?: string): string =>
  requestHead({ method, path, headers, upgrade })

test('is what a request begins with, in bytes of latin1', () => {
  expect(headOf('GET', '/a?b=\xe9', ['Host', 'x', 'X-A', 'b\tc\xff'])).toBe(
    'GET /a?b=\xe9 HTTP/1.1\r\nHost: x\r\nX-A: b\tc\xff\r\nConnection: keep-alive\r\n\r\n',
  )
})

test.each(['POST', 'PUT', 'PATCH'])('of %s has a length without a body too', (method) => {
  expect(headOf(method, '/', [])).toContain('\r\nContent-Length: 0\r\n')
})

test.each([
  ['a line in its target', 'GET', '/ HTTP/1.1\r\nX: y', []],
  ['a space in its target', 'GET', '/a b', []],
  ['no target', 'GET', '', []],
  ['more than bytes in its target', 'GET', '/\u0100', []],
  ['a line in its method', 'GET / HTTP/1.1\r\nX:', '/', []],
  ['no method', '', '/', []],
  ['a line in a value', 'GET', '/', ['X', 'a\r\nY: b']],
  ['a line feed in a value', 'GET', '/', ['X', 'a\nb']],
  ['a NUL in a value', 'GET', '/', ['X', 'a\0']],
  ['more than bytes in a value', 'GET', '/', ['X', '\u5c71']],
  ['a line in a name', 'GET', '/', ['X: a\r\nY', 'b']],
  ['a colon in a name', 'GET', '/', ['X:', 'b']],
  ['no name', 'GET', '/', ['', 'b']],
  ['a length of its own', 'GET', '/', ['content-Length', '1']],
  ['an encoding of its own', 'GET', '/', ['Transfer-Encoding', 'chunked']],
  ['a connection of its own', 'GET', '/', ['Connection', 'close']],
  ['a protocol of its own', 'GET', '/', ['Upgrade', 'h2c']],
])('is rejected with %s', (_what, method, path, headers) => {
  expect(() => headOf(method, path, headers)).toThrow(RequestInvalid)
})

test('is rejected with a line in its protocol', () => {
  expect(() => headOf('GET', '/', [], 'a\r\nX: y')).toThrow(RequestInvalid)
})
