import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { command } from '../sallyport.ts'

/** What somebody needs to join. */
export interface Invitation {
  readonly token: string
  readonly pin: string
}

/** Makes a token, as an operator does. */
export async function invite(dataDirectory: string): Promise<Invitation> {
  const args = ['token', 'create', '--data-dir', dataDirectory, '--output', 'json']
  const { stdout } = await promisify(execFile)(process.execPath, [command, ...args])
  const { token, join } = JSON.parse(stdout) as { token: string; join: string }
  const pin = join.split(' ').at(-1)
  if (pin === undefined) throw new Error(`there is no pin in ${join}`)
  return { token, pin }
}
