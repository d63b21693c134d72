import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { loadKuberc } from './kuberc.ts'

let home: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'kuberc-'))
  await mkdir(join(home, '.kube'))
})
afterEach(() => rm(home, { recursive: true }))

const put = (text: string, name = '.kube/kuberc') => writeFile(join(home, name), text)

describe('preferences', () => {
  test('are those of the home directory, or of the file that KUBERC names', async () => {
    await put('kind: Preference\ncredentialPluginPolicy: DenyAll')
    await put('credentialPluginPolicy: AllowAll', 'mine')
    expect(await loadKuberc({ home })).toMatchObject({ credentialPluginPolicy: 'DenyAll' })
    expect(await loadKuberc({ kuberc: join(home, 'mine'), home })).toEqual({
      credentialPluginPolicy: 'AllowAll',
    })
    expect(await loadKuberc({ kuberc: 'off', home })).toBeUndefined()
  })

  test('may be missing or empty', async () => {
    expect(await loadKuberc({ home })).toBeUndefined()
    await put('# nothing')
    expect(await loadKuberc({ home })).toBeUndefined()
  })

  test.each([
    ['are a list', '[]', 'must be a map'],
    ['are something else', 'kind: Config', 'kind must be Preference'],
    ['cannot be parsed', 'a: [', 'not valid YAML'],
  ])('that %s are refused, since they may hold rules', async (_name, text, message) => {
    await put(text)
    await expect(loadKuberc({ home })).rejects.toThrow(message)
  })

  test('that KUBERC names must exist', async () => {
    await expect(loadKuberc({ kuberc: '/none', home })).rejects.toMatchObject({
      code: 'KUBERC_UNREADABLE',
    })
  })
})
