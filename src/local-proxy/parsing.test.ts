import { describe, expect, test } from 'vitest'
import { cleanPath, decodePath } from '../http/index.ts'
import { findRoute } from './plan-request.ts'
import { matchesAny, parsePatterns } from './request-filter.ts'
import { defaultPort, isWebPort, schemeOfPort } from './services.ts'
import { readRange } from './static-files.ts'

describe('patterns', () => {
  test.each([
    ['^/api/.*/pods/.*/exec', '/api/v1/namespaces/a/pods/b/exec', true],
    ['exec,attach', '/x/attach/y', true],
    ['(?i)^LOCALHOST$', 'localhost', true],
    [String.raw`\A/api\z`, '/api', true],
    [String.raw`\A/api\z`, '/api/v1', false],
    ['(?P<x>a)b', 'ab', true],
    ['', 'anything', false],
    ['^$', 'GET', false],
  ])('%j on %j: %j', (text, tried, expected) => {
    expect(matchesAny(parsePatterns(text, 'flag'), tried)).toBe(expected)
  })

  test('that cannot be read are a wrong call', () => {
    expect(() => parsePatterns('a,(', 'accept-paths')).toThrow('--accept-paths: "("')
  })
})

describe('paths', () => {
  test.each([
    ['/a/b', '/a/b'],
    ['/a//b', '/a/b'],
    ['/a/./b/', '/a/b/'],
    ['/a/../../b', '/b'],
    ['/a/b/..', '/a'],
    ['/..', '/'],
    ['//', '/'],
    ['/a..b/.c', '/a..b/.c'],
  ])('%s is cleaned to %s', (path, clean) => expect(cleanPath(path)).toBe(clean))

  test.each([
    ['/a%2Fb', '/a/b'],
    ['/%C3%A4', '/ä'],
    ['/%ff', '/ÿ'],
  ])('%s is decided about as %s', (path, decoded) => expect(decodePath(path)).toBe(decoded))
})

describe('[CRED-P3] routes', () => {
  test.each([
    ['/', '/api/v1', { kind: 'api', path: '/api/v1' }],
    ['/', '/static', { kind: 'redirect', path: '/static/' }],
    ['/', '/static/a/b', { kind: 'static', path: 'a/b' }],
    ['/custom/', '/custom/api/v1', { kind: 'api', path: '/api/v1' }],
    ['/custom/', '/custom', { kind: 'redirect', path: '/custom/' }],
    ['/api/', '/api/v1', { kind: 'api', path: '/api/v1' }],
    ['/api-x/', '/api-x/v1', { kind: 'api', path: '/api-x/v1' }],
  ])('under %s, %s is %o', (apiPrefix, path, route) => {
    expect(findRoute(path, { apiPrefix, staticPrefix: '/static/' })).toEqual(route)
  })

  test('what is under none is not found', () => {
    expect(() => findRoute('/api/v1', { apiPrefix: '/custom/' })).toThrow('404 page not found')
  })
})

describe('byte ranges of ten bytes', () => {
  test.each([
    ['bytes=0-3', { start: 0, end: 3 }],
    ['bytes=5-', { start: 5, end: 9 }],
    ['bytes=-3', { start: 7, end: 9 }],
    ['bytes=-99', { start: 0, end: 9 }],
    ['bytes=8-99', { start: 8, end: 9 }],
    ['bytes=10-', 'unsatisfiable'],
    ['bytes=-0', 'unsatisfiable'],
    ['bytes=5-3', undefined],
    ['bytes=0-1,3-4', undefined],
    ['lines=1-2', undefined],
    [undefined, undefined],
  ])('%j is %o', (header, range) => expect(readRange(header, 10)).toEqual(range))
})

describe('ports of services', () => {
  test.each([
    [{ port: 80 }, true, ''],
    [{ port: 443 }, true, 'https'],
    [{ port: 5432 }, false, ''],
    [{ port: 5432, name: 'http-admin' }, true, ''],
    [{ port: 9443, name: 'https' }, true, 'https'],
    [{ port: 9443, appProtocol: 'HTTPS' }, true, 'https'],
    [{ port: 443, name: 'https', appProtocol: 'http' }, true, ''],
    [{ port: 80, appProtocol: 'grpc' }, false, ''],
    [{ port: 80, protocol: 'UDP' }, false, ''],
    [{ port: 443, name: 'web' }, true, 'https'],
    [{ port: 443, name: 'http-old' }, true, ''],
    [{ port: 9000, name: 'proxy-tls' }, true, 'https'],
  ])('%o: for a browser %j, scheme %j', (port, isWeb, scheme) => {
    expect(isWebPort(port)).toBe(isWeb)
    expect(schemeOfPort(port)).toBe(scheme)
  })

  test('the web port is the one that is meant, else the first', () => {
    expect(defaultPort([{ port: 5432 }, { port: 80 }])?.port).toBe(80)
    expect(defaultPort([{ port: 5432 }, { port: 5433 }])?.port).toBe(5432)
    expect(defaultPort([])).toBeUndefined()
  })
})
