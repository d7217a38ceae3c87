"""The frame: page config and navigation. Pages are self-sufficient; nothing may rely on this file having run."""

if __name__ == "__main__":  # a worker process imports its parent's main script again
    import streamlit as st

    from ui import frame

    frame.prepare()
    st.navigation(
        {
            "Start": [
                st.Page("pages/start.py", title="Will it hold?", url_path="home", default=True),
                st.Page("pages/start.py", title="Will it hold?", url_path="start", visibility="hidden"),
            ],
            "Understand": [
                st.Page("pages/traffic.py", title="What arrives", url_path="traffic"),
                st.Page("pages/batching.py", title="Who shares the reading", url_path="batching"),
                st.Page("pages/waiting.py", title="Who waits", url_path="waiting"),
            ],
            "Decide": [
                st.Page("pages/overload.py", title="When to say no", url_path="overload"),
                st.Page("pages/scaling.py", title="When help arrives", url_path="scaling"),
                st.Page("pages/promise.py", title="A promise we can keep", url_path="promise"),
                st.Page("pages/placement.py", title="What fits where", url_path="placement"),
            ],
            "About": [st.Page("pages/about.py", title="How this works", url_path="about")],
        }
    ).run()
