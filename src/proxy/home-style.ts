/** The style of the page at `/`, for light and dark. */
export const homeStyle = `
:root { color-scheme: light dark; --ink: #1c2330; --soft: #5b6576; --line: #dde2ea; --card: #fff; --page: #f5f7fa; --link: #1a5fb4; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6eaf0; --soft: #98a3b5; --line: #2e3644; --card: #1c222d; --page: #13171f; --link: #8ab8ff; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 2rem 1.25rem 3rem; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.6rem; }
h2 { margin: 2rem 0 .5rem; font-size: 1.1rem; }
h3 { margin: 1rem 0 .4rem; color: var(--soft); font-size: .9rem; font-weight: 600; }
header p { margin: .25rem 0 0; color: var(--soft); overflow-wrap: anywhere; }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
a:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
ul { margin: 0; padding: 0; list-style: none; }
.row { display: flex; flex-wrap: wrap; gap: .4rem 1.2rem; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr)); gap: .75rem; }
.cards a { display: block; height: 100%; padding: .75rem 1rem; border: 1px solid var(--line); border-radius: .5rem; background: var(--card); color: var(--ink); }
.cards a:hover { border-color: var(--link); text-decoration: none; }
.cards span { color: var(--soft); }
.cards small { display: block; color: var(--link); overflow-wrap: anywhere; }
.none, footer { color: var(--soft); }
footer { margin-top: 3rem; border-top: 1px solid var(--line); font-size: .85rem; }
`
