const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]')?.href

/** The sign of the platform, as in the icon of the tab. */
export const Mark = () => <img class="mark" src={icon} alt="" />
