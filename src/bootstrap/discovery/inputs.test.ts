import { describe, expect, test } from 'vitest'
import { Secret } from '../../core/index.ts'
import { parseApiAddress, parseJoinToken } from './addresses.ts'
import { checkDiscoveryOrder } from './options.ts'
import { checkPins, parsePin } from './verify.ts'

const hex = 'ab'.repeat(32)
const badArguments = expect.objectContaining({ reason: 'bad-arguments', code: 'BAD_ARGUMENTS' })

describe('[DISC-R21, DISC-T12] an address', () => {
  test.each([
    ['api.example.com', 'https://api.example.com:6443'],
    ['api', 'https://api:6443'],
    ['API.Example.com:443', 'https://api.example.com'],
    ['host:7443', 'https://host:7443'],
    ['10.0.0.1', 'https://10.0.0.1:6443'],
    ['10.0.0.1:8443', 'https://10.0.0.1:8443'],
    ['::1', 'https://[::1]:6443'],
    ['2001:db8::1', 'https://[2001:db8::1]:6443'],
    ['[2001:db8::1]', 'https://[2001:db8::1]:6443'],
    ['[2001:DB8::1]:7443', 'https://[2001:db8::1]:7443'],
    ['https://api.example.com', 'https://api.example.com'],
    ['https://api.example.com/', 'https://api.example.com'],
    ['HTTPS://api:6443', 'https://api:6443'],
    ['https://[::1]:6443/', 'https://[::1]:6443'],
    ['https://gate/clusters/a', 'https://gate/clusters/a'],
    ['https://gate:8443/clusters/a/', 'https://gate:8443/clusters/a'],
  ])('%s is %s', (text, url) => {
    expect(parseApiAddress(text)).toBe(url)
  })

  test.each([
    ['', 'is empty'],
    [' host', 'spaces around it'],
    ['http://host', 'clear text'],
    ['HTTP://host:6443', 'clear text'],
    ['ftp://host', 'no https address'],
    ['host/prefix', 'no scheme'],
    ['host:', 'without a port'],
    ['host:0', 'no port from 1'],
    ['host:65536', 'no port from 1'],
    ['host:6443:6443', 'too many colons'],
    ['[::1', 'too many colons'],
    ['[host]:1', 'no IPv6 address'],
    ['fe80::1%eth0', 'zones'],
    ['https://[fe80::1%25eth0]:1', 'zones'],
    ['10.1', 'no host name'],
    ['0x7f.0.0.1', 'no host name'],
    ['256.1.1.1', 'no host name'],
    ['a..b', 'no host name'],
    ['-a', 'no host name'],
    ['ho st', 'no host name'],
    ['https://host?x=1', 'query'],
    ['https://host/#x', 'fragment'],
    ['https://host\\evil', 'backslash'],
    ['https://host/a/../b', 'two ways'],
    ['https://', 'no host name'],
  ])('%j is refused: %s', (text, said) => {
    expect(() => parseApiAddress(text)).toThrow(badArguments)
    expect(() => parseApiAddress(text)).toThrow(said)
  })

  test.each(['jane:hunter2@host', 'https://jane:hunter2@host'])(
    '%s is refused without being repeated',
    (text) => {
      expect(() => parseApiAddress(text)).toThrow(/user or a password in it$/)
    },
  )
})

describe('[DISC-C1] pins', () => {
  const other = `sha256:${'cd'.repeat(32)}`
  test('are read as kubeadm writes them', () => {
    expect(parsePin(`SHA256:${hex.toUpperCase()}`)).toBe(`sha256:${hex}`)
  })

  test.each(['', hex, `sha512:${hex}`, `sha256:${hex}0`, 'sha256:', `sha256:${'g'.repeat(64)}`])(
    '%j is none',
    (text) => {
      expect(() => parsePin(text)).toThrow(badArguments)
    },
  )

  const check = (roots: readonly string[], pinned: readonly string[], systemRoots: boolean) =>
    checkPins(
      roots.map((root) => `sha256:${root}`),
      pinned.map((pin) => `sha256:${pin}`),
      systemRoots,
    )

  test.each([
    ['every root is pinned', [hex], [hex], false],
    ['there are more pins than roots', [hex], [hex, 'cd'.repeat(32)], false],
    ['nothing is pinned', [hex], [], true],
  ])('it is fine that %s', (_name, roots, pinned, systemRoots) => {
    expect(() => check(roots, pinned, systemRoots)).not.toThrow()
  })

  test.each([
    ['no root is pinned', [hex], ['cd'.repeat(32)], false, 'has none of the pins'],
    ['one root is not pinned', [hex, 'ef'.repeat(32)], [hex], false, 'a root that was not pinned'],
    ['there is no root', [], [hex], false, 'no CA of its own'],
    ["the system's roots count as well", [hex], [hex], true, 'which no pin covers'],
  ])('it is a mismatch that %s', (_name, roots, pinned, systemRoots, said) => {
    const checking = () => check(roots, pinned, systemRoots)
    expect(checking).toThrow(expect.objectContaining({ reason: 'pin-mismatch' }))
    expect(checking).toThrow(said)
  })

  test('a mismatch tells the pins that were seen', () => {
    const checking = () => checkPins([`sha256:${hex}`, other], [other])
    expect(checking).toThrow(expect.objectContaining({ pinsSeen: [`sha256:${hex}`, other] }))
    expect(checking).toThrow(`sha256:${hex}`)
  })
})

describe('[DISC-R23] a token', () => {
  test('may bring its pins along', () => {
    const { token, pins } = parseJoinToken(
      new Secret(` abcdef.0123456789abcdef@sha256:${hex}@sha256:${'cd'.repeat(32)}\n`),
    )
    expect([token.id, token.secret.reveal()]).toEqual(['abcdef', '0123456789abcdef'])
    expect(pins).toEqual([`sha256:${hex}`, `sha256:${'cd'.repeat(32)}`])
  })

  test.each(['abcdef.0123456789ABCDEF', 'abcdef', 'abcdef.short', 'abcdef.0123456789abcdef@md5:1'])(
    '%s is refused without being repeated [DISC-T9]',
    (text) => {
      const parse = () => parseJoinToken(text)
      expect(parse).toThrow(badArguments)
      expect(parse).not.toThrow(text.split('@')[0]?.split('.')[1] ?? 'nothing')
    },
  )
})

describe('an order that cannot work is refused before anything is sent', () => {
  const token = 'abcdef.0123456789abcdef'
  test.each([
    ['no address', { method: { by: 'token', addresses: [], token } as const }],
    ['http', { method: { by: 'url', url: 'http://example.com/x' } as const }],
    ['no URL', { method: { by: 'url', url: 'example' } as const }],
    ['a password in the URL [DISC-R18]', { method: { by: 'url', url: 'https://a:b@c/' } as const }],
    ['nothing to keep', { method: { by: 'file', path: 'x' } as const, keepAddress: true }],
    ['a pin', { method: { by: 'file', path: 'x' } as const, pins: ['sha256:1'] }],
  ])('%s', (_name, order) => {
    expect(() => checkDiscoveryOrder(order)).toThrow(badArguments)
  })

  test('pins of the token and of the order count together', () => {
    const order = {
      method: { by: 'token', addresses: ['a', 'a:6443'], token: `${token}@sha256:${hex}` } as const,
      pins: [`sha256:${hex}`, `sha256:${'cd'.repeat(32)}`],
    }
    const { pins, method } = checkDiscoveryOrder(order)
    expect(pins).toHaveLength(2)
    expect(method).toMatchObject({ addresses: ['https://a:6443'], requireJwt: false })
  })
})
