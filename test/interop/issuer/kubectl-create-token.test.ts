import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Kubectl, kubectlAt } from '../../support/kubectl.ts'
import { findKubectl, pathOrReason } from '../../support/peers.ts'
import { type SallyportProcess, startSallyport } from '../../support/sallyport-process.ts'

const versions = ['1.36', '1.31'].map((version) => ({
  version,
  path: pathOrReason(findKubectl(version)),
}))

const pod = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web' },
  spec: { serviceAccountName: 'bot', containers: [{ name: 'main', image: 'x' }] },
})

describe.each(versions)('kubectl $version create token [ISS-K1]', ({ path }) => {
  let server: SallyportProcess
  let kubectl: Kubectl
  let scratch = ''
  beforeAll(async () => {
    if (!path) return
    scratch = await mkdtemp(join(tmpdir(), 'sallyport-tokens-'))
    server = await startSallyport({ args: ['--service-account-max-token-expiration', '2h'] })
    kubectl = kubectlAt(path, server.kubeconfig, join(scratch, 'cache'))
    await kubectl('create serviceaccount bot')
    await kubectl('create -f -', pod)
    await kubectl('create secret generic held')
  })
  afterAll(async () => {
    await server?.stop()
    if (scratch) await rm(scratch, { recursive: true, force: true })
  })

  async function claims(args: string): Promise<Record<string, unknown>> {
    const token = (await kubectl(`create token bot ${args}`)).trim()
    return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
  }

  test.skipIf(!path).each<[string, string, object]>([
    ['plain', '', { sub: 'system:serviceaccount:default:bot' }],
    ['audiences', '--audience vault --audience bank', { aud: ['vault', 'bank'] }],
    [
      'a Pod',
      '--bound-object-kind Pod --bound-object-name web',
      { 'kubernetes.io': { pod: { name: 'web' } } },
    ],
    [
      'a Secret',
      '--bound-object-kind Secret --bound-object-name held',
      { 'kubernetes.io': { secret: { name: 'held' } } },
    ],
  ])('%s', async (_name, args, expected) => {
    expect(await claims(args)).toMatchObject(expected)
  })

  test.skipIf(!path)('a duration, and a warning when it is shortened [ISS-K3]', async () => {
    const { exp, iat } = await claims('--duration 20m')
    expect(Number(exp) - Number(iat)).toBe(1_200)
    const { stderr } = await kubectl.outcome('create token bot --duration 3h')
    expect(stderr).toContain('requested expiration of 10800 seconds shortened to 7200 seconds')
  })

  test.skipIf(!path)('a uid that is another one is refused', async () => {
    const bound = '--bound-object-kind Pod --bound-object-name web --bound-object-uid x'
    const { code, stderr } = await kubectl.outcome(`create token bot ${bound}`)
    expect([code, stderr]).toEqual([1, expect.stringContaining('does not match the UID in record')])
  })

  test.skipIf(!path)('a review of the token, from a file [ISS-K9]', async () => {
    const review = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec: { token: (await kubectl('create token bot')).trim() },
    }
    const answer = await kubectl('create -f - -o json', JSON.stringify(review))
    expect(JSON.parse(answer).status).toMatchObject({
      authenticated: true,
      user: { username: 'system:serviceaccount:default:bot' },
    })
  })

  test.skipIf(!path)('the token works, and ends with its account', async () => {
    const token = (await kubectl('create token bot')).trim()
    const who = `--token ${token} auth whoami -o jsonpath={.status.userInfo.username}`
    // The administrator's certificate would count before the token.
    const asBot = kubectlAt(path!, await withoutUser(kubectl, scratch), join(scratch, 'bot'))
    expect(await asBot(who)).toBe('system:serviceaccount:default:bot')
    await kubectl('delete serviceaccount bot')
    expect((await asBot.outcome(who)).code).toBe(1)
  })
})

/** The same cluster in a kubeconfig that proves nothing. */
async function withoutUser(kubectl: Kubectl, scratch: string): Promise<string> {
  const config = JSON.parse(await kubectl('config view --raw --flatten -o json')) as {
    users: { user: object }[]
  }
  for (const entry of config.users) entry.user = {}
  const path = join(scratch, 'nobody.kubeconfig')
  await writeFile(path, JSON.stringify(config))
  return path
}
