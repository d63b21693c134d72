import type { IncomingMessage } from 'node:http'
import { describe, expect, test } from 'vitest'
import { addForwardingHeaders, makePrivate } from './headers.ts'

describe('the hops of a request', () => {
  test.each([
    [undefined, '10.0.0.1', '10.0.0.1'],
    ['', '10.0.0.1', '10.0.0.1'],
    ['a, b', '10.0.0.1', 'a, b, 10.0.0.1'],
    ['a', undefined, 'a'],
    [undefined, undefined, undefined],
  ])('%j by %j are %j', (before, remoteAddress, hops) => {
    const headers = { ...(before !== undefined && { 'x-forwarded-for': before }) }
    const request = { headers, rawHeaders: [], socket: { remoteAddress } }
    const added: string[] = []
    addForwardingHeaders(added, request as unknown as IncomingMessage)
    expect(added).toEqual(hops === undefined ? [] : ['X-Forwarded-For', hops])
  })
})

describe('a response for one user', () => {
  test.each([
    [[], ['no-cache, private']],
    [['public'], ['private']],
    [['no-store'], ['no-store']],
    [['private, max-age=60'], ['private, max-age=60']],
    [['private, s-maxage=9'], ['private']],
    [['no-cache, private'], ['private, no-cache']],
    [['private', 'public, max-age=60'], ['private, max-age=60']],
    [['x="a', 'private"'], ['private, x="a']],
  ])('with Cache-Control %j has %j', (values, expected) => {
    const sent = values.flatMap((value) => ['cache-control', value, 'x-a', 'b'])
    const headers = makePrivate(['x-first', '1', ...sent])
    const kept = headers.filter((_text, at) => /^cache-control$/i.test(headers[at - 1] ?? ''))
    expect(kept).toEqual(expected)
    expect(headers.filter((text) => text === 'x-a')).toHaveLength(values.length)
  })
})
