/** The style of the page at `/`, for light and dark. */
export const homeStyle = `
:root { color-scheme: light dark; --ink: #1c2330; --soft: #5b6576; --line: #dde2ea; --card: #fff; --page: #f5f7fa; --link: #1a5fb4; --hover: #eef2f8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6eaf0; --soft: #98a3b5; --line: #2e3644; --card: #1c222d; --page: #13171f; --link: #8ab8ff; --hover: #262e3b; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 2rem 1.25rem 3rem; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.6rem; letter-spacing: -.01em; }
h2 { margin: 2rem 0 .5rem; font-size: 1.1rem; }
h3 { margin: 1rem 0 .4rem; color: var(--soft); font-size: .9rem; font-weight: 600; }
header p { margin: .25rem 0 0; color: var(--soft); overflow-wrap: anywhere; }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
a:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
ul { margin: 0; padding: 0; list-style: none; }
.row { display: flex; flex-wrap: wrap; gap: .4rem 1.2rem; }
.list { border: 1px solid var(--line); border-radius: .5rem; background: var(--card); overflow: hidden; }
.list li + li { border-top: 1px solid var(--line); }
.list a { display: flex; flex-wrap: wrap; align-items: baseline; gap: .1rem .75rem; padding: .6rem 1rem; color: var(--ink); }
.list a:hover { background: var(--hover); text-decoration: none; }
.list a:hover small { text-decoration: underline; }
.list a:focus-visible { outline-offset: -2px; }
.list b { overflow-wrap: anywhere; }
.list span { padding: 0 .5rem; border-radius: 1rem; background: var(--hover); color: var(--soft); font-size: .8rem; white-space: nowrap; }
.list small { margin-left: auto; color: var(--link); font-size: .9rem; overflow-wrap: anywhere; }
@media (max-width: 40rem) { .list small { flex-basis: 100%; } }
.none, footer { color: var(--soft); }
footer { margin-top: 3rem; border-top: 1px solid var(--line); font-size: .85rem; }
`
