import { describe, expect, test } from 'vitest'
import { readConnectHead } from './http-connect.ts'

const read = (text: string) => readConnectHead(Buffer.from(text, 'latin1'))

describe('the head of a CONNECT request', () => {
  test.each([
    ['as kube-apiserver sends it', 'CONNECT 10.0.0.1:443 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'],
    ['without headers', 'CONNECT 10.0.0.1:443 HTTP/1.1\r\n\r\n'],
    ['of HTTP/1.0', 'CONNECT 10.0.0.1:443 HTTP/1.0\r\n\r\n'],
    ['with odd values', 'CONNECT 10.0.0.1:443 HTTP/1.1\r\nX:\r\nY:\t\xe9\r\n\r\n'],
  ])('[TUN-P13] %s is read up to its end', (_name, text) => {
    expect(read(`${text}GET`)).toEqual({
      kind: 'connect',
      target: '10.0.0.1:443',
      length: text.length,
    })
  })

  test('[TUN-P13] is waited for, byte by byte', () => {
    const text = 'CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n'
    for (let length = 0; length < text.length; length++)
      expect(read(text.slice(0, length))).toEqual({ kind: 'incomplete' })
    expect(read(text)).toMatchObject({ kind: 'connect' })
  })

  test.each([
    ['TLS', '\x16\x03\x01\x02\x00', 400],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
    ['HTTP/1.2', 'CONNECT a:1 HTTP/1.2\r\n\r\n', 400],
    ['lines that end without a return', 'CONNECT a:1 HTTP/1.1\nHost: x\n\n', 400],
    ['no version', 'CONNECT a:1\r\n\r\n', 400],
    ['two spaces', 'CONNECT  a:1 HTTP/1.1\r\n\r\n', 400],
    ['lower case', 'connect a:1 HTTP/1.1\r\n\r\n', 400],
    ['a control character in the target', 'CONNECT a\x00:1 HTTP/1.1\r\n\r\n', 400],
    ['a bare line feed', 'CONNECT a:1 HTTP/1.1\nHost: x\r\n\r\n', 400],
    ['a bare line feed in a header', 'CONNECT a:1 HTTP/1.1\r\nHost: x\nY: z\r\n\r\n', 400],
    ['a folded header', 'CONNECT a:1 HTTP/1.1\r\nHost: x\r\n y\r\n\r\n', 400],
    ['a space before the colon', 'CONNECT a:1 HTTP/1.1\r\nHost : x\r\n\r\n', 400],
    ['a header without a name', 'CONNECT a:1 HTTP/1.1\r\n: x\r\n\r\n', 400],
    ['another method', 'GET / HTTP/1.1\r\n\r\n', 405],
    ['an endless line', `CONNECT ${'a'.repeat(20_000)}`, 431],
    ['endless headers', `CONNECT a:1 HTTP/1.1\r\nX: ${'a'.repeat(20_000)}\r\n\r\n`, 431],
  ])('[TUN-P13] with %s is refused', (_name, text, status) => {
    expect(read(text)).toMatchObject({ kind: 'fault', status })
  })
})
