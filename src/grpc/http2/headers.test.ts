import { describe, expect, test } from 'vitest'
import { malformedFieldsOf } from '../../../test/support/http2-frames.ts'
import { contentLength, isMalformed, type MessagePart } from './headers.ts'
import type { HeaderField } from './hpack.ts'

const request: readonly HeaderField[] = [
  [':method', 'POST'],
  [':scheme', 'https'],
  [':path', '/x'],
  [':authority', 'host'],
  ['content-type', 'application/grpc'],
  ['te', 'trailers'],
]
const response: readonly HeaderField[] = [[':status', '200']]

const without = (name: string): HeaderField[] => request.filter(([other]) => other !== name)

describe('well-formed messages (RFC 9113 §8.1.1)', () => {
  test.each<[string, MessagePart, readonly HeaderField[]]>([
    ['a request', 'request', request],
    ['a request without :authority', 'request', without(':authority')],
    [
      'a request with an empty :authority',
      'request',
      [...without(':authority').slice(0, 3), [':authority', '']],
    ],
    ['a value that is empty or not ASCII', 'request', [...request, ['x', ''], ['y', '\u00fc']]],
    ['a tab within a value', 'request', [...request, ['x', 'a\tb']]],
    ['a response', 'response', response],
    ['trailers', 'trailers', [['grpc-status', '0']]],
    ['no trailers', 'trailers', []],
  ])('%s', (_name, part, fields) => {
    expect(isMalformed(fields, part)).toBe(false)
  })
})

describe('malformed messages (RFC 9113 §8.1.1)', () => {
  test.each<[string, MessagePart, readonly HeaderField[]]>([
    ['no :method', 'request', without(':method')],
    ['no :scheme', 'request', without(':scheme')],
    ['no :path', 'request', without(':path')],
    ['an empty :path', 'request', [...without(':path').slice(0, 2), [':path', '']]],
    ...request
      .filter(([name]) => name.startsWith(':'))
      .map((field): [string, MessagePart, HeaderField[]] => [
        `${field[0]} twice`,
        'request',
        [field, ...request],
      ]),
    ['a pseudo-header field after others', 'request', [['x', '1'], ...request]],
    ['an unknown pseudo-header field', 'request', [[':x', '1'], ...request]],
    ['an empty name', 'request', [...request, ['', '1']]],
    [':status in a request', 'request', [[':status', '200'], ...request]],
    [':path in a response', 'response', [[':path', '/'], ...response]],
    ['no :status', 'response', [['x', '1']]],
    ['a pseudo-header field in trailers', 'trailers', [[':status', '200']]],
    ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade'].map(
      (name): [string, MessagePart, HeaderField[]] => [name, 'request', [...request, [name, 'x']]],
    ),
    ['te other than trailers', 'request', [...request, ['te', 'trailers, deflate']]],
  ])('%s', (_name, part, fields) => {
    expect(isMalformed(fields, part)).toBe(true)
  })

  test.each(malformedFieldsOf('x-test', 'value'))('field %j: %j', (name, value) => {
    expect(isMalformed([...request, [name, value]], 'request')).toBe(true)
    expect(isMalformed([[name, value]], 'trailers')).toBe(true)
  })
})

test.each([
  [[], -1],
  [['0'], 0],
  [['12'], 12],
  [['12', '12'], 12],
  [['12', '13'], Number.NaN],
  [['+1'], Number.NaN],
  [['1, 1'], Number.NaN],
  [[''], Number.NaN],
  [['1'.repeat(16)], Number.NaN],
])('content-length %j is %s', (values, expected) => {
  expect(contentLength(values.map((value) => ['content-length', value] as const))).toBe(expected)
})
