import { randomBytes } from 'node:crypto'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { CommandFailed, systemErrorCode } from '../core/index.ts'
import type { Kubeconfig } from './kubeconfig.ts'
import { renderKubeconfig } from './render-kubeconfig.ts'

/** Writes a kubeconfig for its owner's eyes only, replacing an existing file in one step. */
export async function writeKubeconfig(path: string, config: Kubeconfig): Promise<void> {
  const text = await renderKubeconfig(config)
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.tmp`)
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    const file = await open(temporary, 'wx', 0o600)
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(temporary, path)
  } catch (cause) {
    await rm(temporary, { force: true }).catch(() => {})
    const why = systemErrorCode(cause) ?? 'unknown error'
    throw new CommandFailed('KUBECONFIG_UNWRITABLE', `cannot write ${path}: ${why}`, {
      hint: 'choose a place where this user may write',
      cause,
    })
  }
}
