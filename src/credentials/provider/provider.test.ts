import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { Secret, systemClock } from '../../core/index.ts'
import type { ClusterRequest, Credential, RequestFn } from '../credential.ts'
import { nodePluginHost } from '../exec/index.ts'
import { staticSource } from '../sources/index.ts'
import type { AuthProvider, RequestWrapper } from '../transport/types.ts'
import {
  certificateFileProvider,
  contextProvider,
  draftTransport,
  execProvider,
  oidcProvider,
  sourceProvider,
  staticProvider,
  tokenFileProvider,
} from './providers.ts'

const target = { server: 'https://a:6443', tls: {} }
const token = (value: string): Credential => ({ token: new Secret(value) })
const certificate: Credential = {
  clientCertificate: { certPem: 'cert', keyPem: new Secret('key') },
}

const request: ClusterRequest = {
  method: 'GET',
  path: '/version',
  headers: {},
  signal: new AbortController().signal,
}
const answering: RequestFn = async ({ headers }) => ({
  status: 200,
  headers: {},
  body: Readable.from([JSON.stringify(headers)]),
})

describe('providers of a transport [CRED-R22]', () => {
  test('offer a token, and never replace one that is there', async () => {
    const answers: boolean[] = []
    const late: AuthProvider = {
      updateTransportConfig: (config) => {
        answers.push(config.offerAuthorization(staticSource(token('late'))))
      },
    }
    const draft = await draftTransport(target, [staticProvider(token('first')), late])
    expect(answers).toEqual([false])
    expect((await draft.credentials?.current())?.token?.reveal()).toBe('first')
  })

  test('add a client certificate to the token of another', async () => {
    const draft = await draftTransport(target, [
      staticProvider(token('t')),
      staticProvider(certificate),
      sourceProvider(
        staticSource({ clientCertificate: { certPem: 'x', keyPem: new Secret('y') } }),
      ),
    ])
    const credential = await draft.credentials?.current()
    expect(credential?.token?.reveal()).toBe('t')
    expect(credential?.clientCertificate?.certPem).toBe('cert')
  })

  test('are called once, in their order, and may take their time', async () => {
    const calls: string[] = []
    const slow: AuthProvider = {
      updateTransportConfig: async ({ server }) => {
        await Promise.resolve()
        calls.push(`slow ${server}`)
      },
    }
    const quick: AuthProvider = { updateTransportConfig: () => void calls.push('quick') }
    const draft = await draftTransport(target, [slow, quick])
    await draft.wrapped(answering)(request)
    await draft.wrapped(answering)(request)
    expect(calls).toEqual(['slow https://a:6443', 'quick'])
  })

  test('put wrappers round every request, the last one outermost', async () => {
    const adding =
      (name: string): RequestWrapper =>
      (next) =>
      (sent) =>
        next({ ...sent, headers: { ...sent.headers, [name]: Object.keys(sent.headers).join() } })
    const draft = await draftTransport(target, [
      { updateTransportConfig: (config) => config.wrap(adding('x-first')) },
      { updateTransportConfig: (config) => config.wrap(adding('x-last')) },
    ])
    const { body } = await draft.wrapped(answering)(request)
    expect(await body.toArray()).toEqual(['{"x-last":"","x-first":"x-last"}'])
  })

  test('may find the credential of others and change with it', async () => {
    const draft = await draftTransport(target, [
      staticProvider(token('t')),
      {
        updateTransportConfig: (config) =>
          config.wrap((next) => async (sent) => {
            const now = await config.credentials?.current()
            return next({ ...sent, headers: { 'x-seen': now?.token?.reveal() ?? '' } })
          }),
      },
    ])
    const { body } = await draft.wrapped(answering)(request)
    expect(await body.toArray()).toEqual(['{"x-seen":"t"}'])
  })

  test('may leave a transport without any credential', async () => {
    const context = {
      contextName: 'main',
      clusterName: 'c',
      cluster: { server: 'https://a' },
      userName: '',
      user: {},
      namespace: 'default',
    }
    const host = { plugins: nodePluginHost() }
    const draft = await draftTransport(target, [contextProvider(context, host)])
    expect(draft.credentials).toBeUndefined()
  })

  test('exec, static, file, oidc and a context are such providers', async () => {
    const host = { clock: systemClock }
    const cluster = { server: target.server }
    const plugins = { plugins: nodePluginHost(), registry: 'none' as const }
    const exec = { command: 'login', apiVersion: 'client.authentication.k8s.io/v1beta1' }
    const oidc = {
      name: 'oidc',
      config: { 'idp-issuer-url': new Secret('https://i'), 'client-id': new Secret('c') },
    }
    const files = { cert: { path: '/none' }, key: { path: '/none' } }
    const offers = async (provider: AuthProvider) => {
      const draft = await draftTransport(target, [provider])
      return [
        draft.offerAuthorization(staticSource({})),
        draft.offerClientCertificate(staticSource({})),
      ].map((free) => !free)
    }
    expect(await offers(staticProvider(token('t')))).toEqual([true, false])
    expect(await offers(staticProvider(certificate))).toEqual([false, true])
    expect(await offers(tokenFileProvider('/none', host))).toEqual([true, false])
    expect(await offers(certificateFileProvider(files, host))).toEqual([false, true])
    expect(await offers(execProvider(exec, cluster, plugins))).toEqual([true, true])
    const session = { ...host, registry: 'none' as const }
    expect(await offers(oidcProvider(oidc, { cluster, user: { name: 'u' } }, session))).toEqual([
      true,
      false,
    ])
  })
})
