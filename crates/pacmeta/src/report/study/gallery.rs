//! Few-shot tasks as people see them: a row of labelled pictures, then pictures with what was predicted for them.

use super::super::page::paragraph;
use super::super::svg::escape;
use super::data::{GalleryPicture, GalleryTask};

/// The most pictures in a row.
const MOST_COLUMNS: usize = 10;

/// One task. Rows are as long as the first one, so that queries in the order of the classes stand below theirs.
pub(super) fn task(task: &GalleryTask) -> String {
    let columns = match task.support.len() {
        0 => MOST_COLUMNS / 2,
        labelled => labelled.min(MOST_COLUMNS),
    };
    let mut out = format!("<div class=\"gallery\" style=\"--columns: {columns}\">\n");
    if !task.heading.trim().is_empty() {
        out.push_str(&format!("<h3>{}</h3>\n", escape(task.heading.trim())));
    }
    for (name, pictures) in [("Labelled", &task.support), ("Classified", &task.queries)] {
        if !pictures.is_empty() {
            let items: String = pictures.iter().map(picture).collect();
            out.push_str(&format!("<p class=\"row\">{name}</p>\n<ul>\n{items}</ul>\n"));
        }
    }
    if !task.caption.trim().is_empty() {
        out.push_str(&paragraph(task.caption.trim(), "caption"));
    }
    out + "</div>\n"
}

fn picture(picture: &GalleryPicture) -> String {
    let class = escape(&picture.class);
    let (style, description, text) = match &picture.prediction {
        None => ("", class.clone(), format!("<b>{class}</b>")),
        Some(prediction) => {
            let right = prediction.class == picture.class;
            let predicted = escape(&prediction.class);
            let percent = (100.0 * prediction.probability).round();
            let truth = if right { String::new() } else { format!("<small>is {class}</small>") };
            (
                if right { " class=\"right\"" } else { " class=\"wrong\"" },
                format!("{class}, taken for {predicted}"),
                // A sign as well, so that colour is never the only difference.
                format!(
                    "<b>{} {predicted}</b><small>{percent} %</small>{truth}",
                    if right { "✓" } else { "✗" }
                ),
            )
        }
    };
    format!(
        "<li{style}><img src=\"{}\" alt=\"{description}\"><span>{text}</span></li>\n",
        escape(&picture.source)
    )
}

#[cfg(test)]
mod tests {
    use super::super::data::GalleryPrediction;
    use super::*;

    #[test]
    fn a_mistake_names_both_classes_and_markup_is_escaped() {
        let prediction = Some(GalleryPrediction { class: "a<b".to_owned(), probability: 0.625 });
        let wrong = GalleryPicture { source: "data:x".to_owned(), class: "dog".to_owned(), prediction };
        let right = GalleryPicture { class: "a<b".to_owned(), ..wrong.clone() };
        let html = task(&GalleryTask { queries: vec![wrong, right], ..GalleryTask::default() });
        assert!(html.contains("class=\"wrong\"") && html.contains("alt=\"dog, taken for a&lt;b\""), "{html}");
        assert!(html.contains("<small>is dog</small>") && html.contains("63 %"), "{html}");
        assert_eq!(html.matches("class=\"right\"").count(), 1);
        assert!(!html.contains("Labelled") && !html.contains("a<b"), "{html}");
    }
}
