import { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import type { Clock } from '../core/index.ts'
import { requestWith } from './authentication-request.suite.ts'
import {
  clientCertificate,
  rememberVerified,
  type VerifiedClientCertificate,
} from './client-certificate.ts'
import { type FrontProxyHeaders, requestHeader } from './request-header.ts'
import { identityHeaderTest, withoutIdentity } from './strip-identity.ts'

const signal = new AbortController().signal
const certificate = (
  commonName: string,
  ...organizations: string[]
): VerifiedClientCertificate => ({
  commonName,
  organizations,
  serial: '0A1B',
  fingerprint256: 'AB:CD:EF',
  notAfter: 5_000,
})

describe('a client certificate', () => {
  test('names user and groups and can be revoked by its serial [GND-R72]', () => {
    const authenticator = clientCertificate(() => certificate('jane', 'dev', 'ops'))
    expect(authenticator.authenticate(requestWith([]), signal)).toEqual({
      user: {
        username: 'jane',
        groups: ['dev', 'ops'],
        extra: { 'authentication.kubernetes.io/credential-id': ['X509SHA256=abcdef'] },
      },
      method: 'client-certificate',
      credential: { type: 'certificate', serial: '0A1B' },
      expiresAt: 5_000,
    })
  })

  test('that is not there is left to others [GND-R72]', () => {
    expect(clientCertificate(() => undefined).authenticate(requestWith([]), signal)).toBeUndefined()
  })

  test.each([
    [
      'does not verify',
      () => {
        throw new Error('signed by an unknown CA')
      },
    ],
    ['names nobody', () => certificate('', 'system:masters')],
  ])('that %s is 401 [GND-R72]', (_what, verify) => {
    expect(() => clientCertificate(verify).authenticate(requestWith([]), signal)).toThrow(
      expect.objectContaining({ reason: 'Unauthorized', message: 'Unauthorized' }),
    )
  })

  test('gives the same object on every request of a connection', () => {
    const jane = certificate('jane')
    const authenticator = clientCertificate(() => jane)
    const first = authenticator.authenticate(requestWith([]), signal)
    expect(authenticator.authenticate(requestWith([]), signal)).toBe(first)
  })
})

describe('a connection', () => {
  let now = 0
  const clock: Clock = { now: () => now, monotonic: () => now }

  test('is verified once, and again when the certificate has expired or the CAs have changed [GND-R72]', () => {
    now = 0
    let times = 0
    const { verify, forget } = rememberVerified(() => {
      times += 1
      return certificate('jane')
    }, clock)
    const socket = new Socket()
    verify(socket)
    verify(socket)
    expect(times).toBe(1)
    verify(new Socket())
    expect(times).toBe(2)
    forget()
    verify(socket)
    expect(times).toBe(3)
    now = 5_000
    verify(socket)
    expect(times).toBe(4)
  })

  test('is refused after expiry although it was good before [GND-R72]', () => {
    now = 0
    const { verify } = rememberVerified(() => {
      if (now >= 5_000) throw new Error('expired')
      return certificate('jane')
    }, clock)
    const authenticator = clientCertificate(verify)
    const request = requestWith([])
    expect(authenticator.authenticate(request, signal)).toMatchObject({
      user: { username: 'jane' },
    })
    now = 5_000
    expect(() => authenticator.authenticate(request, signal)).toThrow('Unauthorized')
  })
})

describe('a front proxy', () => {
  const proxy = requestHeader({ verify: () => certificate('proxy'), allowedNames: ['proxy'] })

  test('states user, uid, groups and extras [GND-R71]', () => {
    const request = requestWith([
      ['X-Remote-User', 'jane'],
      ['x-remote-uid', 'u-1'],
      ['X-Remote-Group', 'a, b'],
      ['X-REMOTE-GROUP', 'c'],
      ['X-Remote-Extra-Scopes', 'one'],
      ['X-Remote-Extra-scopes', 'two'],
      ['X-Remote-Extra-Acme.com%2fProject', 'x'],
    ])
    expect(proxy.authenticate(request, signal)).toEqual({
      user: {
        username: 'jane',
        uid: 'u-1',
        groups: ['a, b', 'c'],
        extra: { scopes: ['one', 'two'], 'acme.com/project': ['x'] },
      },
      method: 'request-header',
      credential: { type: 'certificate', serial: '0A1B' },
      expiresAt: 5_000,
    })
  })

  test('may send names beyond ASCII as UTF-8', () => {
    const sent = Buffer.from('Łukasz', 'utf8').toString('latin1')
    const found = proxy.authenticate(requestWith([['X-Remote-User', sent]]), signal)
    expect(found).toMatchObject({ user: { username: 'Łukasz' } })
    const broken = requestWith([['X-Remote-User', 'jos\u00e9']])
    expect(() => proxy.authenticate(broken, signal)).toThrow('Unauthorized')
  })

  test.each([
    ['an empty user name', ['X-Remote-User', '']],
    ['an empty uid', ['X-Remote-Uid', '']],
    ['an empty group', ['X-Remote-Group', '']],
    ['a key that cannot be decoded', ['X-Remote-Extra-Bad%zz', 'y']],
  ])('with %s is a wrong credential, not the next one [SEC-R303]', (_what, header) => {
    const user = header[0] === 'X-Remote-User' ? [] : [['X-Remote-User', 'jane']]
    const request = requestWith([...user, header] as [string, string][])
    expect(() => proxy.authenticate(request, signal)).toThrow('Unauthorized')
  })

  test('keeps keys that are names of our language apart from it', () => {
    const request = requestWith([
      ['X-Remote-User', 'a'],
      ['X-Remote-Extra-__proto__', 'x'],
    ])
    const found = proxy.authenticate(request, signal)
    expect(found).not.toBeInstanceOf(Promise)
    const extra = 'user' in found! ? found.user.extra! : {}
    expect(Object.keys(extra)).toEqual(['__proto__'])
    expect(Object.getPrototypeOf({})).toBe(Object.prototype)
  })

  test.each([
    ['no certificate', () => undefined, ['proxy']],
    [
      'a certificate under another CA',
      () => {
        throw new Error('unknown CA')
      },
      ['proxy'],
    ],
    ['a name that is not allowed', () => certificate('other'), ['proxy']],
    ['a name that only begins as an allowed one', () => certificate('proxy2'), ['proxy']],
    ['a name in another case', () => certificate('Proxy'), ['proxy']],
  ])('is not believed with %s [GND-R71]', (_what, verify, allowedNames) => {
    const authenticator = requestHeader({ verify, allowedNames })
    const request = requestWith([['X-Remote-User', 'root']])
    expect(authenticator.authenticate(request, signal)).toBeUndefined()
  })

  test('of any name is believed when no names are given [GND-R71]', () => {
    const authenticator = requestHeader({ verify: () => certificate('x'), allowedNames: [] })
    const found = authenticator.authenticate(requestWith([['X-Remote-User', 'jane']]), signal)
    expect(found).toMatchObject({ user: { username: 'jane' } })
  })

  test.each(['X_Remote_User', 'X.Remote.User', 'X-Remote_User', 'XRemoteUser', 'X-Remote-User-2'])(
    'says nothing by %s [GND-R71]',
    (name) => {
      expect(proxy.authenticate(requestWith([[name, 'root']]), signal)).toBeUndefined()
    },
  )

  test('that passes on a second user is refused, whichever came first [GND-R71]', () => {
    for (const names of [
      ['root', 'jane'],
      ['jane', 'root'],
    ]) {
      const request = requestWith(names.map((name) => ['X-Remote-User', name] as const))
      expect(() => proxy.authenticate(request, signal)).toThrow('Unauthorized')
    }
  })

  test('may use other header names', () => {
    const headers: FrontProxyHeaders = {
      username: ['X-Absent', 'X-Who'],
      uid: ['X-Id'],
      group: ['X-Team'],
      extraPrefix: ['X-More-'],
    }
    const authenticator = requestHeader({
      verify: () => certificate('proxy'),
      allowedNames: [],
      headers,
    })
    const request = requestWith([
      ['X-Who', 'jane'],
      ['X-Team', 'a'],
      ['X-More-K', 'v'],
    ])
    expect(authenticator.authenticate(request, signal)).toMatchObject({
      user: { username: 'jane', groups: ['a'], extra: { k: ['v'] } },
    })
    expect(
      authenticator.authenticate(requestWith([['X-Remote-User', 'jane']]), signal),
    ).toBeUndefined()
  })
})

describe('before a request is forwarded', () => {
  const custom: FrontProxyHeaders = {
    username: ['X-Who'],
    uid: [],
    group: ['X-Team'],
    extraPrefix: ['X-More-'],
  }
  const isIdentity = identityHeaderTest(custom)

  test.each([
    'X-Remote-User',
    'x-remote-user',
    'X_Remote_User',
    'X.REMOTE.user',
    'X-Remote_Group',
    'X-Remote-Uid',
    'X-Remote-Extra-Anything',
    'x_remote_extra_anything',
    'Impersonate-User',
    'impersonate_user',
    'Impersonate.Group',
    'Impersonate-Extra-Scopes',
    'Impersonate-Anything-New',
    'Authorization',
    'AUTHORIZATION',
    'X-Who',
    'x_who',
    'X_Team',
    'X-More-Key',
  ])('%s is taken out [GND-R71]', (name) => {
    expect(withoutIdentity(['Accept', '*/*', name, 'root', 'Host', 'h'], isIdentity)).toEqual([
      'Accept',
      '*/*',
      'Host',
      'h',
    ])
  })

  test.each(['X-Remote-Address', 'Accept', 'X-Forwarded-For', 'X-Whom', 'Imperson'])(
    '%s stays',
    (name) => {
      expect(withoutIdentity([name, 'x'], isIdentity)).toEqual([name, 'x'])
    },
  )

  test('a token among WebSocket protocols is taken out, the others stay', () => {
    const token = `base64url.bearer.authorization.k8s.io.${Buffer.from('t').toString('base64url')}`
    const name = 'Sec-WebSocket-Protocol'
    expect(withoutIdentity([name, `v4.channel.k8s.io, ${token}`], isIdentity)).toEqual([
      name,
      'v4.channel.k8s.io',
    ])
    expect(withoutIdentity([name, token], isIdentity)).toEqual([])
  })
})
