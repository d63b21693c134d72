import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { HttpsCaller } from '../../support/https-caller.ts'
import {
  hasKubeApiserver,
  type KubeApiserverProcess,
  startKubeApiserver,
} from '../../support/kube-apiserver-process.ts'
import { prepareWhoami, tryAs, whoamiIdentities } from '../../support/whoami-rights.ts'

describe.skipIf(!hasKubeApiserver())('whoami at kube-apiserver 1.36 [SEC-R1601]', () => {
  let upstream: KubeApiserverProcess
  let admin: HttpsCaller
  let whoami: HttpsCaller
  beforeAll(async () => {
    upstream = await startKubeApiserver([])
    const target = { port: Number(new URL(upstream.address).port), ca: upstream.caPem }
    admin = new HttpsCaller(target, { token: upstream.adminToken })
    whoami = new HttpsCaller(target, { token: await prepareWhoami(admin) })
  }, 120_000)
  afterAll(async () => {
    admin.close()
    whoami.close()
    await upstream.stop()
  }, 60_000)

  test.each(Object.keys(whoamiIdentities))('has the same rights as here, as %s', async (who) => {
    const { found, expected } = await tryAs(whoami, who)
    expect(found).toEqual(expected)
  })
})
